//! `openai_compat_call` with the real binary, down the road, against a server on this machine.

use claw_llm::ProviderKind;
use claw_testkit::models::{Manners, ModelServer};

use crate::harness::{Home, Ran};

const KEY: &str = "sk-of-the-endpoint-0123456789";

fn config(server: &ModelServer) -> String {
    let base = server.base_url(ProviderKind::OpenAi);
    format!(
        r#"
        [endpoints.ask]
        about = "Answers a question."
        base_url = "{base}"
        read = "/choices/0/message/content"
        key_env = ["ASK_KEY"]

        [endpoints.ask.body]
        model = "m"
        messages = [{{ role = "user", content = "{{{{question}}}}" }}]
        "#
    )
}

async fn call(home: &Home, args: &str, words: &[&str]) -> Ran {
    let mut command =
        home.command(&[&["tools", "call", "openai_compat_call", "--args", args], words].concat());
    command.env("ASK_KEY", KEY);
    tokio::task::block_in_place(|| home.ran(&mut command))
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_an_endpoint_and_shows_no_key() {
    let script = format!("[[turn]]\ndo = [{{ say = \"the key is {KEY}; you said {{{{said}}}}\" }}]\n");
    let server = ModelServer::start(&script, Manners { unstreamed: true, ..Manners::default() }).await;
    let home = Home::with_config(&config(&server));
    let listed = call(&home, "{}", &[]).await;
    assert_eq!(listed.stdout, "ask: Answers a question. (values: question)\n", "{}", listed.shown());
    let args = r#"{"endpoint":"ask","values":{"question":"who are you?"}}"#;
    let ran = call(&home, args, &[]).await;
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("you said who are you?"), "{}", ran.shown());
    assert_eq!(server.asked()[0].key.as_deref(), Some(KEY));
    let ledger = home.run(&["ledger", "show", "--json"]);
    assert!(!ran.shown().contains(KEY) && !ledger.stdout.contains(KEY), "{}", ran.shown());

    let unknown = call(&home, r#"{"endpoint":"elsewhere"}"#, &[]).await;
    assert!(
        unknown.code == 1 && unknown.stderr.contains("there is no endpoint `elsewhere`"),
        "{}",
        unknown.shown()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_where_the_network_is_denied_and_where_nothing_is_configured() {
    let server = ModelServer::start("[[turn]]\ndo = [{ say = \"hello\" }]\n", Manners::default()).await;
    let home = Home::with_config(&format!("[tools]\ndeny = [\"effect:network\"]\n{}", config(&server)));
    let args = r#"{"endpoint":"ask","values":{"question":"hello"}}"#;
    assert_eq!(call(&home, args, &[]).await.code, 3);
    let home = Home::with_config(&format!("[approvals.effects]\nspend = \"ask\"\n{}", config(&server)));
    let asked = call(&home, args, &[]).await;
    assert_eq!(asked.code, 3, "{}", asked.shown());
    assert_eq!(server.asked(), [], "nothing was sent");
    let bare = call(&Home::new(), args, &[]).await;
    assert!(bare.code == 3 && bare.stderr.contains("no endpoint is configured"), "{}", bare.shown());
    let wrong = Home::with_config("[endpoints.ask]\nbase_url = \"file:///etc\"\n");
    let ran = call(&wrong, args, &[]).await;
    assert!(ran.code == 2 && ran.stderr.contains("`endpoints.ask.base_url`"), "{}", ran.shown());
}
