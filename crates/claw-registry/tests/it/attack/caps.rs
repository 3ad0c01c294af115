//! Results too large for their readers.

use super::*;

#[tokio::test]
async fn the_text_of_a_resource_is_kept_when_it_is_cut() {
    let bench = Bench::new(Setup::default());
    let (tool, _) = gives("resource", || {
        Ok(Output::text("see the resource").and(Block::Resource {
            uri: "file:///report".into(),
            mime: None,
            text: Some("report line\n".repeat(10_000)),
        }))
    });
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("resource", json!({})).await;
    let text = serde_json::to_string(&reply.outcome.unwrap()).unwrap();
    assert!(text.contains("report line"), "120 kB vanished without a word: {text}");
}

#[tokio::test]
async fn advice_and_details_of_an_error_are_capped() {
    let bench = Bench::new(Setup::default());
    let (tool, _) = gives("verbose", || {
        Err(ToolError::failed("no")
            .try_instead("z".repeat(5_000_000))
            .with_details(json!("d".repeat(5_000_000))))
    });
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("verbose", json!({})).await;
    assert!(reply.model_text().len() < 200_000, "the model gets {} bytes", reply.model_text().len());
}

#[tokio::test]
async fn a_deliverable_and_pictures_and_blocks_are_capped() {
    let bench = Bench::new(Setup::default());
    let (tool, _) = gives("many", || {
        let mut output = Output::default();
        output.content = vec![Block::Text { text: String::new() }; 500_000];
        Ok(output)
    });
    bench.executor.registry().register(tool).unwrap();
    let output = bench.call("many", json!({})).await.outcome.unwrap();
    assert!(output.content.len() < 10_000, "{} blocks", output.content.len());
}

#[tokio::test]
async fn a_resource_with_a_huge_mime_or_a_huge_picture_is_capped() {
    let bench = Bench::new(Setup::default());
    let (tool, _) = gives("pics", || Ok(Output::image("image/png", vec![0; 50_000_000])));
    bench.executor.registry().register(tool).unwrap();
    let output = bench.call("pics", json!({})).await.outcome.unwrap();
    let size = serde_json::to_string(&output).unwrap().len();
    assert!(size < 30_000_000, "{size} bytes");
}

#[tokio::test]
async fn a_plans_advice_is_capped() {
    let bench = Bench::new(Setup::default());
    let mut meta = Meta::of("planner".parse().unwrap(), Group::Tools);
    meta.effects = Effects::NONE;
    let (tool, _) = custom(
        meta,
        any_schema(),
        |_, _| Err(ToolError::failed("no").try_instead("q".repeat(5_000_000))),
        |_, _| Box::pin(async { Ok(Output::text("")) }),
    );
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("planner", json!({})).await;
    assert!(reply.model_text().len() < 200_000, "{} bytes", reply.model_text().len());
}

#[tokio::test]
async fn arguments_that_are_read_already_have_the_same_limit() {
    let limits = Limits { argument_bytes: 1000, ..Limits::default() };
    let bench = Bench::new(Setup { limits, ..Setup::default() });
    let text = "x".repeat(100_000);
    let offer = bench.offer().await;
    let mut request = Request::new("say", json!({}));
    request.args = Arguments::Text(json!({ "text": text }).to_string());
    assert_eq!(refused(&bench.executor.execute(&offer, request).await).0, "validate");
    let reply = bench.call("say", json!({ "text": text })).await;
    assert!(!reply.is_done(), "100 kB passed a limit of 1000 bytes");
}
