//! Templates: those refused when a tool is defined, and the results of filling them.

mod shells;

use claw_core::store::{
    CustomToolAction, CustomToolDefinition, CustomToolGrants, CustomToolHttp, CustomToolPlace, GrantedPath,
};
use claw_core::tool::{AnyTool as _, Ask, Effect, Facts, SecretVariables};
use claw_core::{TenantId, ToolName};
use serde_json::{Value, json};

use super::*;

/// `a` is required, `b` optional, `c` has a default, `d` may begin with `-`, `l` is an optional list.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "a": { "type": "string" },
            "b": { "type": "string" },
            "c": { "type": "string", "default": "dflt" },
            "d": { "type": "string", "x-allow-dash": true },
            "n": { "type": "integer" },
            "l": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["a"],
    })
}

#[track_caller]
fn refuses(template: &str, at: usize) -> String {
    let error = Template::shell(template, &schema()).expect_err(template).to_string();
    assert!(error.starts_with(&format!("at character {at}: ")), "{template}: {error}");
    error
}

#[track_caller]
fn fills(template: &str, args: Value, expected: &str) {
    let template = Template::shell(template, &schema()).unwrap();
    assert_eq!(template.command(&args).unwrap(), expected);
}

#[test]
fn the_example_of_the_documents_works_unchanged() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "domain": { "type": "string", "description": "Domain name" },
            "record_type": { "type": "string", "enum": ["A", "AAAA", "MX", "CNAME", "TXT"] }
        },
        "required": ["domain"]
    });
    let template = Template::shell("dig +short {{.record_type}} {{.domain}}", &parameters).unwrap();
    let both = json!({ "domain": "example.com", "record_type": "MX" });
    assert_eq!(template.command(&both).unwrap(), "dig +short 'MX' 'example.com'");
    assert_eq!(template.command(&json!({ "domain": "example.com" })).unwrap(), "dig +short  'example.com'");
}

#[test]
fn refuses_one_argument_that_smuggles_another() {
    // Filled one after the other, `a` would bring in `b`, and `b` a command.
    fills("echo {{.a}} {{.b}}", json!({ "a": "{{.b}}", "b": "; cmd #" }), "echo '{{.b}}' '; cmd #'");
    fills("echo {{.a}} {{.b}}", json!({ "a": "x", "b": "{{.a}}" }), "echo 'x' '{{.a}}'");
    fills("echo {{.a}}", json!({ "a": "'; id; '" }), r"echo ''\''; id; '\'''");
}

#[test]
fn a_missing_optional_word_is_dropped() {
    fills("ls {{.b}} {{.a}}", json!({ "a": "x" }), "ls  'x'");
    fills("ls {{.b}} {{.a}}", json!({ "a": "x", "b": null }), "ls  'x'");
    fills("ls {{.b}} {{.a}}", json!({ "a": "", "b": "" }), "ls '' ''");
    fills("ls {{.l}} {{.a}}", json!({ "a": "x", "l": ["1", "2 3"] }), "ls '1' '2 3' 'x'");
    fills("ls {{.l}} {{.a}}", json!({ "a": "x", "l": [] }), "ls  'x'");
    fills("ls --c={{.c}} {{.n}}", json!({ "n": 7 }), "ls --c='dflt' '7'");
}

#[test]
fn refuses_an_optional_word_whose_absence_changes_the_command() {
    for (template, at) in [
        ("{{.b}} x", 1),
        ("cat > {{.b}} important", 7),
        ("rm -rf /data/{{.b}}", 14),
        ("ls x{{.b}}", 5),
        ("ls; {{.b}} x", 5),
        ("if {{.b}}; then x; fi", 4),
        ("A=1 {{.b}} x", 5),
        ("2>/dev/null {{.b}} x", 13),
        ("ls | {{.b}} x", 6),
        ("! {{.b}} x", 3),
        ("for i in {{.b}}; do x; done", 10),
        ("ls {{.a}}{{.b}}", 10),
        ("ls ''{{.b}}", 6),
    ] {
        assert!(refuses(template, at).contains("optional"), "{template}");
    }
    fills("{{.a}} x", json!({ "a": "ls" }), "'ls' x");
    fills("cat > {{.a}}", json!({ "a": "f" }), "cat > 'f'");
    fills("ls 2>&1 {{.b}}", json!({ "a": "f" }), "ls 2>&1 ");
}

#[test]
fn refuses_a_placeholder_that_is_no_parameter() {
    assert!(refuses("ls {{.nope}}", 4).contains("`a`, `b`"));
    assert!(refuses("ls {{.a} }", 4).contains("placeholder"));
    refuses("ls {{ .a }}", 4);
    refuses("ls {{.}}", 4);
    refuses("ls {{.a", 4);
    refuses("ls {{.a.b}}", 4);
    // No placeholder at all: left to the shell.
    fills("awk '{{print $1}}' {{.a}}", json!({ "a": "f" }), "awk '{{print $1}}' 'f'");
}

#[test]
fn refuses_a_placeholder_where_quoting_means_something_else() {
    for (template, at) in [
        ("echo '{{.a}}'", 7),
        ("echo \"{{.a}}\"", 7),
        ("echo \"x {{.a}} y\"", 9),
        ("echo $'{{.a}}'", 8),
        ("echo ${{.a}}", 6),
        ("echo \\{{.a}}", 7),
        ("echo `echo {{.a}}`", 12),
        ("echo $(echo {{.a}})", 13),
        ("echo \"$(echo {{.a}})\"", 14),
        ("echo ${x:-{{.a}}}", 11),
        ("echo $(( {{.a}} ))", 10),
        ("echo x # {{.a}}", 10),
        ("cat <<EOF\n{{.a}}\nEOF", 5),
        ("cat <<'EOF' {{.a}}\nx\nEOF", 5),
        ("(( x = {{.a}} ))", 1),
        ("[[ {{.a}} -eq 1 ]]", 1),
        ("x[{{.a}}]=1", 3),
        ("echo {x,{{.a}}}", 9),
        ("diff <(sort x) {{.a}}", 6),
        ("x=({{.a}})", 3),
        ("echo 'x {{.a}}", 9),
        ("echo 'x' 'y {{.b}}' {{.a}}", 13),
        ("eval echo {{.a}}", 11),
        ("command eval {{.a}}", 14),
        ("sh -c {{.a}}", 7),
        ("/bin/bash -ec {{.a}}", 15),
        ("let {{.a}}", 5),
        ("printf -v {{.a}} x", 11),
        ("echo \"$(echo 'x')\" {{.a}}", 7),
        ("echo \"$(case x in a) echo \" {{.a}} \";; esac)\"", 7),
        ("echo {{.a}} \\", 13),
    ] {
        let error = refuses(template, at);
        assert!(error.contains("outside of quotes"), "{template}: {error}");
    }
    fills("printf '%s' {{.a}} {{.b}}", json!({ "a": "x", "b": "y" }), "printf '%s' 'x' 'y'");
    fills("sh -c 'grep \"$1\" f' sh {{.a}}", json!({ "a": "x" }), "sh -c 'grep \"$1\" f' sh 'x'");
    fills("echo \"$(date)\" {{.a}} $HOME", json!({ "a": "x" }), "echo \"$(date)\" 'x' $HOME");
    fills("a=1; ls {{.a}} | grep \"it's\" # it's", json!({ "a": "x" }), "a=1; ls 'x' | grep \"it's\" # it's");
}

#[test]
fn refuses_a_value_that_a_program_behind_another_one_reads_as_code() {
    for template in [
        "timeout 5 sh -c {{.a}}",
        "sh '-c' {{.a}}",
        "'sh' \"-c\" {{.a}}",
        "s\\h -c {{.a}}",
        "source {{.a}}",
        ". {{.a}}",
        "eval {{.a}}",
        "'eval' {{.a}}",
        "builtin eval {{.a}}",
        "ls | xargs sh -c {{.a}}",
        "xargs -n1 /bin/bash -ec {{.a}}",
        "env A=1 sh -c {{.a}}",
        "nohup nice -n 5 sh -c {{.a}}",
        "find . -exec sh -c {{.a}} \\;",
        "docker exec box sh -c {{.a}}",
        "busybox sh -c {{.a}}",
        "exec bash -c {{.a}}",
        "bash -o pipefail -c {{.a}}",
        "bash $X {{.a}}",
        "bash {{.a}}",
        "python3 -c {{.a}}",
        "python3.12 -c{{.a}}",
        "perl -ne {{.a}} f",
        "node --eval={{.a}}",
        "awk {{.a}} f",
        "sed -n {{.a}} f",
        "su -c {{.a}} user",
        "watch {{.a}}",
        "ssh -p 22 host {{.a}}",
        "A=1 sh -c {{.a}}",
    ] {
        let error = Template::shell(template, &schema()).expect_err(template).to_string();
        assert!(error.contains("reads as code"), "{template}: {error}");
    }
    for words in [
        vec!["sh", "-c", "{{.a}}"],
        vec!["timeout", "5", "sh", "-c", "echo {{.a}}"],
        vec!["python3", "-c{{.a}}"],
        vec!["bash", "{{.a}}"],
        vec!["{{.a}}"],
    ] {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        assert!(Template::words(&words, &schema()).is_err(), "{words:?}");
    }
    for template in [
        "timeout 5 sh -c 'grep \"$1\" f' sh {{.a}}",
        "bash scripts/deploy.sh {{.a}}",
        "grep bash {{.a}}",
        "python3 tool.py {{.a}}",
        "python3 -m json.tool {{.a}}",
        "awk -F : '{print $1}' {{.a}}",
        "sed -n 1p {{.a}}",
        "ssh {{.a}} uptime",
        "ssh -p 22 {{.a}} uptime",
        "git -C {{.a}} log",
        "xargs -n1 echo {{.a}}",
    ] {
        Template::shell(template, &schema()).expect(template);
    }
}

#[test]
fn refuses_a_value_that_would_be_an_option() {
    let dash = |template: &str, args: Value| Template::shell(template, &schema()).unwrap().command(&args);
    for (template, args) in [
        ("ls {{.a}}", json!({ "a": "-rf" })),
        ("ls {{.l}}", json!({ "a": "x", "l": ["x", "--help"] })),
        ("ls ''{{.a}}", json!({ "a": "-x" })),
        ("ls $X{{.a}}", json!({ "a": "-x" })),
        ("ls {{.a}}{{.c}}", json!({ "a": "", "c": "-x" })),
        ("ls {{.n}}", json!({ "a": "x", "n": -1 })),
    ] {
        let error = dash(template, args).expect_err(template);
        assert!(matches!(error, FillError::Dash { .. }), "{template}: {error}");
    }
    fills("ls {{.d}}", json!({ "a": "x", "d": "-l" }), "ls '-l'");
    fills("ls --sort={{.a}}", json!({ "a": "-x" }), "ls --sort='-x'");
    assert!(matches!(dash("ls {{.a}}", json!({ "a": "\0" })), Err(FillError::Nul { .. })));
}

#[test]
fn an_argument_list_needs_no_quotes() {
    let words = |words: &[&str]| {
        Template::words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &schema())
    };
    let template = words(&["grep", "--regexp={{.a}}", "{{.b}}", "{{.l}}", "it's \"{{.c}}\""]).unwrap();
    let filled = template.argv(&json!({ "a": "$(id) '{{.b}}'", "l": ["1", ";"] })).unwrap();
    assert_eq!(filled, ["grep", "--regexp=$(id) '{{.b}}'", "1", ";", "it's \"dflt\""]);
    assert_eq!(words(&["{{.a}}", "x"]), Err(TemplateError::NoProgram));
    assert_eq!(words(&[]), Err(TemplateError::NoProgram));
    let error = words(&["ls", "x{{.b}}"]).unwrap_err().to_string();
    assert!(error.starts_with("in argument 1: at character 2: "), "{error}");
    assert!(matches!(template.argv(&json!({ "a": "x", "b": "-x" })), Err(FillError::Dash { .. })));
}

fn place(name: &str) -> CustomToolPlace {
    CustomToolPlace { tenant: TenantId::main(), agent: None, name: ToolName::new(name).unwrap() }
}

fn definition(action: CustomToolAction) -> CustomToolDefinition {
    CustomToolDefinition {
        description: "Does it.".into(),
        parameters: schema(),
        action,
        timeout_seconds: 60,
        grants: CustomToolGrants::default(),
        enabled: true,
    }
}

fn command(template: &str) -> CustomToolDefinition {
    definition(CustomToolAction::Command { template: template.into(), working_dir: ".".into() })
}

#[test]
fn refuses_names_that_lead_elsewhere() {
    for name in
        ["exec", "bash", "Bash", "EXEC", "read_file", "custom", "fs", "mcp", "mcp_x_y", "MCP_x", "browser"]
    {
        let error = check(&place(name), &command("ls {{.a}}")).expect_err(name);
        assert!(matches!(error, DefinitionError::Name(_)), "{name}: {error}");
    }
    check(&place("dns_lookup"), &command("ls {{.a}}")).unwrap();
}

#[test]
fn refuses_definitions_that_cannot_be_tools() {
    let changed = |change: fn(&mut CustomToolDefinition)| {
        let mut definition = command("ls {{.a}}");
        change(&mut definition);
        check(&place("t"), &definition).unwrap_err().to_string()
    };
    for (said, change) in [
        ("description", (|d| d.description = " ".into()) as fn(&mut CustomToolDefinition)),
        ("timeout_seconds", |d| d.timeout_seconds = 0),
        ("parameters", |d| d.parameters = json!([])),
        ("parameters", |d| d.parameters = json!({ "type": "string" })),
        ("grants.paths", |d| d.grants.paths = vec![GrantedPath { path: "/".into(), write: false }]),
        ("grants.paths", |d| d.grants.paths = vec![GrantedPath { path: "/a/../b".into(), write: false }]),
        ("grants.paths", |d| d.grants.paths = vec![GrantedPath { path: "a".into(), write: false }]),
        ("working_dir", |d| {
            d.action = CustomToolAction::Command { template: "ls".into(), working_dir: "../x".into() };
        }),
        ("working_dir", |d| {
            d.action = CustomToolAction::Command { template: "ls".into(), working_dir: "/etc".into() };
        }),
    ] {
        assert!(changed(change).contains(said), "{said}: {}", changed(change));
    }
}

#[test]
fn the_plan_names_the_filled_command_and_shows_no_secret() {
    let mut defined = command("deploy {{.a}}");
    defined.grants =
        CustomToolGrants { network: true, paths: vec![GrantedPath { path: "/srv/x".into(), write: true }] };
    let variables = SecretVariables::new(vec![("TOKEN".into(), "s3cr3t-value".into())]);
    let secrets = CustomToolSecrets { variables, ..CustomToolSecrets::default() };
    let tool = CustomTool::new(&place("deploy"), defined, secrets).unwrap();
    let plan = tool.plan(&Facts::default(), &json!({ "a": "it's" })).unwrap();
    let Ask::Script(script) = &plan.asks[0] else { panic!("{plan:?}") };
    assert_eq!((script.text.as_str(), script.timeout_secs), (r"deploy 'it'\''s'", Some(60)));
    assert!(plan.effects.has(Effect::Network));
    let shown = format!("{plan:?} {} {tool:?}", serde_json::to_string(&plan).unwrap());
    assert!(shown.contains("TOKEN") && shown.contains("/srv/x") && !shown.contains("s3cr3t"), "{shown}");
    assert!(tool.spec().parameters["properties"]["d"].get(ALLOW_DASH).is_none());
    assert_eq!(tool.spec().parameters["additionalProperties"], false);
}

fn http(url: &str, body: Option<Value>) -> Result<CustomTool, DefinitionError> {
    let http = CustomToolHttp { method: "post".into(), url: url.into(), body, headers: Vec::new() };
    CustomTool::new(&place("call"), definition(CustomToolAction::Http(http)), CustomToolSecrets::default())
}

#[test]
fn an_address_keeps_its_host_and_its_path() {
    let tool = http("https://api.example.com:8443/v1/{{.a}}?q={{.c}}", None).unwrap();
    let sent = |a: &str| tool.rendered(&json!({ "a": a }));
    assert_eq!(
        sent("x/../y?z=1&ü #").unwrap(),
        "POST https://api.example.com:8443/v1/x%2F..%2Fy%3Fz%3D1%26%C3%BC%20%23?q=dflt"
    );
    assert!(sent("..").is_err() && sent(".").is_err());
    let plan = tool.plan(&Facts::default(), &json!({ "a": "x" })).unwrap();
    assert!(
        matches!(&plan.asks[0], Ask::Host { origin } if origin.to_string() == "https://api.example.com:8443")
    );
    for url in [
        "https://{{.a}}/x",
        "https://example.com{{.a}}/x",
        "{{.a}}",
        "ftp://example.com/",
        "https://user@example.com/",
        "https:///x",
        "https://example.com/{{.b}}",
        "https://example.com/{{.nope}}",
    ] {
        assert!(http(url, None).is_err(), "{url}");
    }
}

#[test]
fn a_request_that_may_change_something_has_the_effect_of_writing() {
    for (method, writes) in [("get", false), ("post", true), ("put", true), ("patch", true), ("delete", true)]
    {
        let url = "https://example.com/".to_owned();
        let http = CustomToolHttp { method: method.into(), url, body: None, headers: Vec::new() };
        let tool = definition(CustomToolAction::Http(http));
        let tool = CustomTool::new(&place("call"), tool, CustomToolSecrets::default()).unwrap();
        let plan = tool.plan(&Facts::default(), &json!({ "a": "x" })).unwrap();
        let has = (tool.meta().effects.has(Effect::Write), plan.effects.has(Effect::Write));
        assert_eq!(has, (writes, writes), "{method}");
        assert!(plan.all_effects(tool.meta().effects).has(Effect::Network), "{method}");
    }
}

#[test]
fn a_body_is_filled_with_values() {
    let body =
        json!({ "q": "{{.a}}", "n": "{{.n}}", "t": "say {{.a}}", "gone": "{{.b}}", "l": ["{{.l}}", 1] });
    let http = CustomToolHttp {
        method: "POST".into(),
        url: "https://example.com/".into(),
        body: Some(body),
        headers: Vec::new(),
    };
    let template = super::http_template::HttpTemplate::read(&http, &schema()).unwrap();
    let filled = template.fill(&json!({ "a": "{{.n}}\"", "n": 3, "l": ["x"] })).unwrap();
    let expected = json!({ "q": "{{.n}}\"", "n": 3, "t": "say {{.n}}\"", "l": [["x"], 1] });
    assert_eq!(filled.body, Some(expected));
    assert!(
        super::http_template::HttpTemplate::read(
            &CustomToolHttp { body: Some(json!({ "t": "x {{.b}}" })), ..http },
            &schema()
        )
        .is_err()
    );
}

#[test]
fn a_missing_grant_is_named() {
    let defined = command("ls {{.a}}");
    let missing = |output: &str| missing_grants(&defined, Some(1), output);
    assert_eq!(missing("curl: (6) Could not resolve host: example.com"), ["network"]);
    assert_eq!(missing("cat: /srv/data/x: No such file or directory"), ["/srv/data/x"]);
    assert_eq!(missing("all is well"), [""; 0]);
    assert_eq!(missing_grants(&defined, Some(0), "Could not resolve host"), [""; 0]);
}
