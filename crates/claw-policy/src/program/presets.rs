//! Presets of programs that are commonly given to agents, with the arguments they must not be given.
//!
//! Each refuses arguments that show or change credentials, that start other programs, and that cannot be
//! undone and are seldom intended. Each names the helpers that it may run; the kernel refuses to run anything
//! else.

use claw_core::store::ProgramSettings;

/// A preset.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// The program's name.
    pub name: &'static str,
    /// Environment variables that hold its credentials; the first is the usual one.
    pub variables: &'static [&'static str],
    /// The programs that it may run, as [`ProgramSettings::helpers`] writes them. None is a shell or another
    /// program that runs what a file of the workspace says, except for the Python of `gcloud`, which is written in it.
    /// Two things keep that Python from a planted file: `deny_args` refuses the commands of `gcloud` that run a file
    /// which they are told, and the sandbox keeps Python from importing what is not its own.
    pub helpers: &'static [&'static str],
    /// Patterns of forbidden arguments.
    pub deny_args: &'static [&'static str],
    /// Patterns of arguments that would make it print its credentials.
    pub deny_verbose: &'static [&'static str],
    /// Advice for agents.
    pub tips: &'static str,
}

impl Preset {
    /// The settings of a program that is registered with this preset.
    pub fn settings(&self, binary: String) -> ProgramSettings {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        ProgramSettings {
            helpers: owned(self.helpers),
            deny_args: owned(self.deny_args),
            deny_verbose: owned(self.deny_verbose),
            tips: self.tips.to_owned(),
            ..ProgramSettings::new(binary)
        }
    }
}

/// The parts of git that speak HTTPS, and git itself by the name under which it starts its own commands.
macro_rules! git_and {
    ($($more:literal),*) => {
        &[
            $($more,)*
            "../lib/git-core/git",
            "../lib/git-core/git-remote-http",
            "../lib/git-core/git-remote-https",
            "../libexec/git-core/git",
            "../libexec/git-core/git-remote-http",
            "../libexec/git-core/git-remote-https",
        ]
    };
}

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Variables that tell an address rather than an identity: their values are not secret, and would otherwise
/// be scrubbed from all output of a program.
pub const OPEN_VARIABLES: &[&str] = &[
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "CLOUDSDK_CORE_PROJECT",
    "GH_HOST",
    "GIT_HTTP_HOST",
    "GIT_HTTP_USER",
    "GIT_SSL_CAINFO",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
];

/// Options with a value may stand between a program and its command.
macro_rules! after_flags {
    ($what:literal) => {
        concat!(r"(?:-\S+(?:\s+[^-\s]\S*)?\s+)*", $what, r"(?:\s|$)")
    };
}

/// All presets, by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "aws",
        variables: &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"],
        helpers: &[],
        deny_args: &[
            r"configure(?:\s|$)",
            r"sso(?:\s|$)",
            r"iam\s+(?:create|delete|update|put|attach|detach|add|remove|set|upload|deactivate)",
            r"sts\s+(?:assume|get-session-token|get-federation-token)",
            r"ecr\s+get-login",
            r"(?:eks|rds)\s+(?:get-token|generate-db-auth-token)",
            r"codeartifact\s+get-authorization-token",
            r"secretsmanager\s+(?:get-secret-value|batch-get-secret-value)",
            r"ssm\s+(?:get-parameters?\S*\s.*--with-decryption|start-session|send-command)",
            r"kms\s+(?:decrypt|generate-data-key)",
            r"ec2\s+get-password-data",
            // Options may be shortened.
            r"--en\S*",
            r"--no-v\S*",
            r"--ca\S*",
            r"--prof\S*",
            r"--pro(?:=|\s)",
        ],
        deny_verbose: &["--de(?:b\\S*)?(?:\\s|$)"],
        tips: "AWS CLI. Ask with --output json and --query; credentials and identities cannot be changed.",
    },
    Preset {
        name: "gcloud",
        variables: &["CLOUDSDK_AUTH_ACCESS_TOKEN", "CLOUDSDK_CORE_PROJECT"],
        helpers: &["dirname", "readlink", "uname", "python3", "../platform/bundledpythonunix/bin/python3"],
        deny_args: &[
            r"(?:alpha\s+|beta\s+)?auth(?:\s|$)",
            r"(?:alpha\s+|beta\s+)?config(?:\s|$)",
            r"(?:alpha\s+|beta\s+)?init(?:\s|$)",
            r"components(?:\s|$)",
            r"(?:alpha\s+|beta\s+)?iam\s+service-accounts\s+keys",
            r"(?:alpha\s+|beta\s+)?secrets\s+versions\s+access",
            r"(?:alpha\s+|beta\s+)?compute\s+(?:ssh|scp|start-iap-tunnel)",
            r"(?:alpha\s+|beta\s+)?sql\s+generate-login-token",
            r"projects\s+delete",
            // These run a script or a module of the workspace: `setup.py`, what `--module-name` says, a pickled model.
            r"(?:ai-platform|ml-engine)\s+(?:local|jobs\s+submit)(?:\s|$)",
            r"meta(?:\s|$)",
            r"interactive(?:\s|$)",
            r"scc\s+(?:iac-remediation|remediation-intents)(?:\s|$)",
            r"--staging-command",
            // Options may be shortened.
            r"--acc\S*",
            r"--imp\S*",
            r"--flags-\S*",
            // Another login, which a file of the workspace would hold.
            r"--authori(?:ty-selector|zation-token-file)",
            r"--credential-file-override",
        ],
        deny_verbose: &["--log-\\S*", "--verb\\S*(?:=|\\s+)debug"],
        tips: "Google Cloud CLI. Ask with --format=json; logins and configuration cannot be changed.",
    },
    Preset {
        name: "gh",
        variables: &["GH_TOKEN", "GH_HOST"],
        // It asks git which repository it is in.
        helpers: git_and!["git", "/usr/lib/git-core/git", "/usr/libexec/git-core/git"],
        deny_args: &[
            r"auth(?:\s|$)",
            r"config(?:\s|$)",
            r"(?:ssh|gpg)-key(?:\s|$)",
            r"(?:secret|variable)(?:\s|$)",
            r"(?:extension|ext|extensions|alias)(?:\s|$)",
            r"codespace(?:\s|$)|cs\s+(?:ssh|cp|jupyter|ports)",
            r"repo\s+(?:delete|deploy-key)",
            r"api\s.*(?:user/keys|/actions/secrets|/dependabot/secrets|/hooks|deploy[-_]keys|/collaborators)",
            // A path with escapes could name any of them.
            r"api\s.*%[0-9A-Fa-f]{2}",
            r"--hostname(?:=|\s)",
        ],
        deny_verbose: &["--verbose", "-v(?:\\s|$)"],
        tips: "GitHub CLI. Available: gh api, gh repo, gh issue, gh pr, gh run, gh search.",
    },
    Preset {
        name: "git",
        variables: &["GIT_HTTP_TOKEN", "GIT_HTTP_HOST", "GIT_HTTP_USER"],
        helpers: git_and![],
        deny_args: &[
            r"-[cC](?:\s|\S)",
            // Options may be shortened.
            r"--co(?:n(?:f\S*)?)?(?:=|\s|$)",
            r"--(?:git-dir|work-tree|namespace|attr-source|super-prefix|bare|te(?:m\S*)?|rec\S*|se(?:p\S*)?)(?:=|\s|$)",
            r"--exec-path",
            // Options may be shortened.
            r"(?:-u|--up\S*|--rece\S*|--exe\S*)(?:=|\s|$)",
            r"config(?:\s|$)",
            r"credential",
            r"(?:submodule\s+foreach|bisect\s+run|filter-branch|difftool|mergetool|rebase\s.*(?:-x|--exe))",
            r"(?:daemon|instaweb|send-email|shell|upload-archive|var|bugreport|diagnose|for-each-repo)(?:\s|$)",
            r"ext::",
            r"push\s.*(?:--force(?:\s|$)|-f(?:\s|$)|--mirror|--delete|\+\S+)",
        ],
        deny_verbose: &["--trace", "-v(?:\\s|$)", "--verbose"],
        tips: "git over HTTPS with a login to one host. The login is given to clone, fetch, pull, push and ls-remote; hooks, filters, aliases and submodules do not run.",
    },
    Preset {
        name: "kubectl",
        variables: &["KUBECONFIG"],
        helpers: &["diff"],
        deny_args: &[
            after_flags!(r"(?:exec|attach|port-forward|proxy|cp|debug|run|edit|plugin|krew)"),
            after_flags!(r"config"),
            after_flags!(r"create\s+token"),
            // Anywhere: `get -o yaml secrets`, `get pod/x secret/y`.
            r"(?:\S*,)?secrets?(?:[,./]\S*)?(?:\s|$)",
            r"--from-(?:file|env-file)",
            r"(?:--token|--kubeconfig|--kuberc|--server|--tls-server-name|-s\S*|--as|--as-group|--insecure-skip-tls-verify|--certificate-authority)(?:=|\s|$)",
            r"delete\s+(?:ns|namespaces?|nodes?|pv|persistentvolumes?|crd|customresourcedefinitions?)(?:\s|/|$)",
            r"delete\s.*--all(?:\s|=|$|-namespaces)",
            r"get\s+--raw",
        ],
        deny_verbose: &["--?v(?:=|\\s*)\\+?0*(?:[6-9]|[1-9]\\d)"],
        tips: "Kubernetes. Available: get, describe, logs, apply, rollout, top; no secrets, no shells in pods.",
    },
    Preset {
        name: "terraform",
        variables: &["TF_TOKEN_app_terraform_io"],
        helpers: &[],
        deny_args: &[
            r"(?:login|logout|console)(?:\s|$)",
            r"(?:apply|destroy|import|taint|untaint|force-unlock)(?:\s|$)",
            r"state\s+(?:pull|push|rm|mv|replace-provider)",
            r"output(?:\s|$)",
            r"show(?:\s|$)",
            r"workspace\s+delete",
            r"-chdir=(?:/|\S*\.\.)",
            r"init\s.*-(?:backend-config|plugin-dir|from-module)",
        ],
        deny_verbose: &[],
        tips: "Terraform. Available: init, validate, fmt, plan, providers, state list; nothing that changes anything. Providers run only from directories that were named as helpers.",
    },
];
