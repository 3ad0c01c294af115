//! The built-in rules.

use crate::shell::verdict::Decision;

/// A built-in rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Name: the group, a dot, and the subject.
    pub id: &'static str,
    /// The decision.
    pub decision: Decision,
    /// The reason, for a person.
    pub person: &'static str,
    /// Advice for the model on what to try instead.
    pub model: &'static str,
}

impl Rule {
    /// The group, which can be switched off as a whole.
    pub fn group(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    /// Returns whether the rule can be switched off. Commands that are not understood cannot be waved
    /// through.
    pub fn can_be_off(&self) -> bool {
        self.group() != "unknown"
    }
}

const fn deny(id: &'static str, person: &'static str, model: &'static str) -> Rule {
    Rule { id, decision: Decision::Deny, person, model }
}

const fn ask(id: &'static str, person: &'static str, model: &'static str) -> Rule {
    Rule { id, decision: Decision::Ask, person, model }
}

/// The rules, by group.
pub const RULES: &[Rule] = &[
    deny(
        "destructive.rm-recursive",
        "deletes whole directories without asking back",
        "delete single files by name, or move what is not needed to another place",
    ),
    deny(
        "destructive.rm-root",
        "deletes a root, home or system directory",
        "name the files inside the workspace that should go",
    ),
    ask(
        "destructive.rm-tree",
        "deletes a directory with all it holds",
        "delete single files by name, or wait for the answer",
    ),
    deny(
        "destructive.find-delete",
        "deletes everything below a directory",
        "restrict `find` by name, and look at its output first",
    ),
    deny("destructive.overwrite", "makes files unrecoverable", "delete files by name if they have to go"),
    deny(
        "destructive.permissions",
        "opens or takes away a whole tree's permissions",
        "change the mode of the files that need it",
    ),
    deny(
        "destructive.windows",
        "deletes without asking back, in the language of cmd",
        "delete single files by name",
    ),
    deny(
        "destructive.system-file",
        "changes a file of the system or of the user's accounts",
        "work on files in the workspace",
    ),
    deny(
        "destructive.history",
        "throws committed or stored work away without a way back",
        "make a branch or a backup first, and leave this to a person",
    ),
    ask(
        "destructive.uncommitted",
        "throws away changes that nobody has committed",
        "commit or `git stash` them first, or wait for the answer",
    ),
    deny("disk.format", "formats or repartitions a disk", "work on files in the workspace"),
    deny("disk.raw-copy", "copies raw blocks with dd", "use cp, head or truncate"),
    deny("disk.device", "writes to a disk's device", "write to files in the workspace"),
    deny("system.power", "stops or restarts the machine", "leave the machine running"),
    deny(
        "system.services",
        "changes the services or the kernel of the machine",
        "run what you need as an ordinary process",
    ),
    deny("system.kill-all", "ends processes that are not yours", "end your own processes by their id"),
    deny("system.accounts", "changes users, groups or passwords", "work as the user you are"),
    deny(
        "system.firewall",
        "changes the network or firewall of the machine",
        "work with the network as it is",
    ),
    deny(
        "fork-bomb.function",
        "starts itself over and over until nothing else runs",
        "start a fixed number of processes",
    ),
    deny(
        "remote-code.piped",
        "runs what it fetches from another machine unseen",
        "download to a file, read it, then decide",
    ),
    deny(
        "remote-code.fetched-file",
        "runs a file that it has just fetched, unseen",
        "download first, read the file, then run it in another call",
    ),
    deny(
        "remote-code.inline",
        "code that fetches code and runs it",
        "download to a file, read it, then decide",
    ),
    ask(
        "remote-code.package",
        "installs or runs code from an address, not from a registry",
        "install by name and version, or download it, read it, then install",
    ),
    deny("reverse-shell.device", "opens a connection with /dev/tcp or /dev/udp", "use curl for requests"),
    deny("reverse-shell.netcat", "ties a program to a connection", "use curl for requests"),
    deny("reverse-shell.inline", "code that ties a shell to a connection", "use curl for requests"),
    deny("eval.dynamic", "runs text that is only made while running", "write the command out"),
    deny("eval.decoded", "decodes text and runs it", "write the command out"),
    ask(
        "eval.inline-code",
        "inline code that names processes, connections, deletion or decoding",
        "put the code in a file, or do it with simpler commands",
    ),
    deny(
        "eval.inline-destructive",
        "inline code that deletes trees or runs what rules deny",
        "delete single files by name",
    ),
    deny("eval.option", "an option that makes a program run another one", "run the other program by itself"),
    deny(
        "privilege.become",
        "acts as another user, or asks for more rights",
        "work with the rights you have",
    ),
    deny(
        "privilege.setuid",
        "gives a file the rights of its owner or capabilities",
        "leave setuid and capabilities alone",
    ),
    deny(
        "environment.injection",
        "sets a variable that makes programs load or run other code",
        "leave the variable as it is",
    ),
    ask(
        "environment.path",
        "changes where programs are looked for",
        "keep `$PATH` in it, or give programs by their path",
    ),
    deny(
        "container.escape",
        "reaches out of a container, or starts one with the host's rights",
        "start containers without the host's files, namespaces and devices",
    ),
    deny(
        "container.namespace",
        "enters namespaces, mounts or changes roots",
        "work in the directories that are there",
    ),
    deny(
        "persistence.schedule",
        "leaves something that runs later or at every start",
        "run what is needed now",
    ),
    deny("persistence.profile", "changes what runs at every login", "leave start-up files alone"),
    deny("persistence.keys", "changes who may log in", "leave keys and accounts alone"),
    deny("exfiltration.secrets", "sends files or secrets to another machine", "keep secrets where they are"),
    deny(
        "exfiltration.metadata",
        "asks the machine's cloud for its credentials",
        "leave the metadata service alone",
    ),
    ask(
        "exfiltration.upload",
        "sends a file to another machine",
        "say what is to be sent and where, and wait for the answer",
    ),
    ask("unknown.command", "which program runs is only known at run time", "write the program's name out"),
    ask(
        "unknown.argument",
        "an argument that is only known at run time may be an option that deletes or runs something",
        "write the arguments out, or put `--` before them",
    ),
    ask("unknown.script", "which script runs is only known at run time", "write the script out"),
    ask(
        "unknown.input",
        "an interpreter reads what it runs from its standard input",
        "put the program in a file and run that",
    ),
    ask("unknown.recursion", "a function calls itself", "write a loop"),
    ask("unknown.shell-state", "changes what names mean to the shell", "use the programs by their own names"),
    ask("unknown.syntax", "cannot be read as a command", "write it in plain shell syntax"),
    ask("unknown.size", "is too large to be followed", "split it, or put it in a script file"),
];

/// The rule of this name.
pub(crate) fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
