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
        "deletes whole directories without confirmation",
        "delete single files by name, or move unneeded files elsewhere",
    ),
    deny(
        "destructive.rm-root",
        "deletes a root, home or system directory",
        "name the files inside the workspace that should be deleted",
    ),
    ask(
        "destructive.rm-tree",
        "deletes a directory with everything in it",
        "delete single files by name, or wait for the answer",
    ),
    deny(
        "destructive.find-delete",
        "deletes everything below a directory",
        "restrict `find` by name, and look at its output first",
    ),
    deny("destructive.overwrite", "makes files unrecoverable", "delete the files by name instead"),
    deny(
        "destructive.permissions",
        "opens a directory tree's permissions to everyone, or removes them",
        "change the mode of the files that need it",
    ),
    deny(
        "destructive.windows",
        "deletes without confirmation, with Windows commands (cmd, PowerShell)",
        "delete single files by name",
    ),
    deny(
        "destructive.system-file",
        "changes a file of the system or of the user's accounts",
        "work on files in the workspace",
    ),
    deny(
        "destructive.history",
        "irrecoverably discards committed or stored work",
        "make a branch or a backup first, and leave this to a person",
    ),
    ask(
        "destructive.uncommitted",
        "discards changes that were not committed",
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
        "starts itself again and again until the machine stalls",
        "start a fixed number of processes",
    ),
    deny(
        "remote-code.piped",
        "downloads code from another machine and runs it before anyone has read it",
        "download to a file, read it, then decide",
    ),
    deny(
        "remote-code.fetched-file",
        "downloads a file and runs it before anyone has read it",
        "download first, read the file, then run it in another call",
    ),
    deny(
        "remote-code.inline",
        "inline code that downloads code and runs it",
        "download to a file, read it, then decide",
    ),
    ask(
        "remote-code.package",
        "installs or runs code from an address, not from a registry",
        "install by name and version, or download it, read it, then install",
    ),
    deny("reverse-shell.device", "opens a connection with /dev/tcp or /dev/udp", "use curl for requests"),
    deny(
        "reverse-shell.netcat",
        "connects a program's input and output to the network",
        "use curl for requests",
    ),
    deny("reverse-shell.inline", "code that connects a shell to the network", "use curl for requests"),
    deny("eval.dynamic", "runs text that is only known at run time", "write the command out"),
    deny("eval.decoded", "decodes text and runs it", "write the command out"),
    ask(
        "eval.inline-code",
        "inline code that names processes, connections, deletion or decoding",
        "put the code in a file, or do it with simpler commands",
    ),
    deny(
        "eval.inline-destructive",
        "inline code that deletes directory trees or runs commands that other rules deny",
        "delete single files by name",
    ),
    deny(
        "eval.option",
        "uses an option that makes a program run another program",
        "run the other program by itself",
    ),
    deny(
        "privilege.become",
        "acts as another user, or asks for more rights",
        "work with the rights you have",
    ),
    deny(
        "privilege.setuid",
        "sets setuid or setgid on a file, or gives it capabilities",
        "leave setuid and capabilities alone",
    ),
    deny(
        "environment.injection",
        "sets a variable that makes programs load or run other code",
        "run the command without setting this variable",
    ),
    ask(
        "environment.path",
        "changes `PATH`, where programs are searched",
        "keep `$PATH` in the value, or name programs by their path",
    ),
    deny(
        "container.escape",
        "reaches out of a container, or starts one with the host's rights",
        "start containers without the host's files, namespaces and devices",
    ),
    deny(
        "container.namespace",
        "enters namespaces, mounts file systems or changes the root directory",
        "work in the directories that are there",
    ),
    deny("persistence.schedule", "makes something run later or at every start", "run what is needed now"),
    deny("persistence.profile", "changes what runs at every login", "leave start-up files alone"),
    deny("persistence.keys", "changes who may log in", "leave keys and accounts alone"),
    deny("exfiltration.secrets", "sends files or secrets to another machine", "keep secrets where they are"),
    deny(
        "exfiltration.metadata",
        "asks the cloud's metadata service for the machine's credentials",
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
        "an interpreter reads code from its standard input",
        "put the program in a file and run that",
    ),
    ask("unknown.recursion", "a function calls itself", "write a loop"),
    ask(
        "unknown.shell-state",
        "changes the meaning of names in the shell",
        "use the programs by their own names",
    ),
    ask("unknown.syntax", "cannot be parsed as a command", "write it in plain shell syntax"),
    ask("unknown.size", "is too large to be analysed", "split it, or put it in a script file"),
];

/// The rule of this name.
pub(crate) fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
