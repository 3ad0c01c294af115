//! Slow pages beside others.

use claw_net::Options;

use super::*;

/// A page that never ends if its address says so.
fn read(source: &Source, _: ExtractMode) -> Result<WebPage, ToolError> {
    if source.url.path() == "/slow" {
        loop {
            std::thread::park();
        }
    }
    Ok(WebPage { text: "read".to_owned(), ..WebPage::default() })
}

fn fetcher(limit: Duration) -> Arc<Fetcher> {
    Arc::new(Fetcher {
        client: Client::new(Options::default()),
        whole: Duration::from_secs(30),
        most_bytes: 1000,
        redirects: 0,
        extracting: Arc::new(Semaphore::new(2)),
        reading: Arc::new(Semaphore::new(MOST_READING)),
        extract: read,
        pace: Pace { limit, turn: Duration::from_millis(10) },
        pdf: None,
    })
}

fn source(path: &str) -> Source {
    let url = Url::parse(&format!("http://a.example{path}")).unwrap();
    Source { url, content_type: None, body: Vec::new() }
}

fn slow(fetcher: &Arc<Fetcher>) -> tokio::task::JoinHandle<Result<WebPage, ToolError>> {
    let fetcher = Arc::clone(fetcher);
    tokio::spawn(async move { fetcher.extract(source("/slow"), ExtractMode::Markdown).await })
}

#[tokio::test]
async fn a_page_that_is_never_read_to_its_end_keeps_no_other_waiting() {
    let fetcher = fetcher(Duration::from_secs(600));
    // Two pages can be read at once.
    let stuck: Vec<_> = (0..4).map(|_| slow(&fetcher)).collect();
    let page = fetcher.extract(source("/quick"), ExtractMode::Markdown).await.unwrap();
    assert_eq!(page.text, "read");
    assert!(stuck.iter().all(|page| !page.is_finished()));
}

#[tokio::test]
async fn threads_that_nobody_waits_for_any_more_are_bounded() {
    let fetcher = fetcher(Duration::from_millis(50));
    for page in (0..MOST_READING).map(|_| slow(&fetcher)).collect::<Vec<_>>() {
        assert_eq!(page.await.unwrap().unwrap_err().kind, ErrorKind::TimedOut);
    }
    assert_eq!(fetcher.extracting.available_permits(), 2);
    let refused = fetcher.extract(source("/quick"), ExtractMode::Markdown).await.unwrap_err();
    assert!(refused.kind == ErrorKind::Unavailable && refused.message.contains("16 slow pages"), "{refused}");
}
