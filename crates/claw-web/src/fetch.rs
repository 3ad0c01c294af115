//! Fetches a page within its limits and turns it into text.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claw_core::port::{ExtractMode, WebPage};
use claw_core::tool::{ErrorKind, ToolError};
use claw_net::{Client, Gate, HeaderValue, Method, NetError, Request, Times, Url, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::cache::Fetched;
use crate::page::{self, Source};
use crate::pdf::{self, PdfProcess};

/// Prefers Markdown if a site offers it.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, \
                      text/plain;q=0.8, */*;q=0.5";
/// Most pages that are read at all, including those whose callers have given up: a thread cannot be ended
/// from outside.
pub(crate) const MOST_READING: usize = 16;
/// Stack size of threads that turn pages into text: trees may be deep.
const STACK: usize = 64 * 1024 * 1024;

/// Fetches pages.
pub(crate) struct Fetcher {
    pub(crate) client: Client,
    pub(crate) whole: Duration,
    pub(crate) most_bytes: u64,
    pub(crate) redirects: usize,
    /// Limits the pages that are turned into text at once, which is CPU-bound.
    pub(crate) extracting: Arc<Semaphore>,
    /// Limits the threads that turn pages into text; each holds its permit until it ends.
    pub(crate) reading: Arc<Semaphore>,
    /// Turns bytes into text.
    pub(crate) extract: Extract,
    /// Time limits of `extract`.
    pub(crate) pace: Pace,
    /// Starts readers of PDF.
    pub(crate) pdf: Option<Arc<dyn PdfProcess>>,
}

/// Time limits for turning bytes into text.
pub(crate) struct Pace {
    /// Timeout.
    pub(crate) limit: Duration,
    /// Time after which a page gives up its place among those being read at once; it continues beside the
    /// others.
    pub(crate) turn: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { limit: Duration::from_secs(20), turn: Duration::from_secs(2) }
    }
}

/// Turns bytes into text.
pub(crate) type Extract = fn(&Source, ExtractMode) -> Result<WebPage, ToolError>;

/// Refuses an address by the lists, with the reason.
pub(crate) type Judge = Arc<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

impl Fetcher {
    /// Fetches a page; `judge` is asked about each redirect.
    pub(crate) async fn fetch(
        &self,
        url: &Url,
        mode: ExtractMode,
        judge: Judge,
    ) -> Result<Fetched, ToolError> {
        let way = Arc::new(Mutex::new(Vec::new()));
        let gate: Gate = {
            let way = Arc::clone(&way);
            Arc::new(move |url: &Url| {
                judge(url)?;
                way.lock().unwrap_or_else(PoisonError::into_inner).push(url.clone());
                Ok(())
            })
        };
        let times = Times { first_byte: self.whole, idle: self.whole, whole: Some(self.whole) };
        let request = Request::new(Method::GET, url.clone())
            .header(header::ACCEPT, HeaderValue::from_static(ACCEPT))
            .header(header::ACCEPT_LANGUAGE, HeaderValue::from_static("en, *;q=0.5"))
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br, deflate"))
            .redirects(self.redirects)
            .most_bytes(self.most_bytes)
            .times(times)
            .gate(gate);
        let mut response = self.client.send(request).await.map_err(unreached)?;
        let status = response.status();
        let host = response.url().host_str().unwrap_or_default().to_owned();
        if !(200..300).contains(&status) {
            return Err(refused(status, &host));
        }
        let content_type = response.header("content-type").map(str::to_owned);
        let url = response.url().clone();
        let body = response.decoded().await.map_err(unreached)?;
        let source = Source { url, content_type, body: body.to_vec() };
        let mut page = self.extract(source, mode).await?;
        page.status = status;
        let way = way.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Fetched { page, way })
    }

    /// Turns bytes into text on a separate thread: pages are hostile, and may be deep or slow to read.
    async fn extract(&self, source: Source, mode: ExtractMode) -> Result<WebPage, ToolError> {
        let host = source.url.host_str().unwrap_or_default().to_owned();
        let turn = Arc::clone(&self.extracting).acquire_owned().await.map_err(ToolError::internal)?;
        let mut turn = Some(turn);
        if page::is_pdf(&source) && mode != ExtractMode::Raw {
            let mut page = (self.extract)(&source, mode)?;
            let reading = pdf::read(self.pdf.as_deref(), source.body, &mut page);
            self.patient(reading, &mut turn).await?;
            page::finish(&mut page);
            return Ok(page);
        }
        let thread = Arc::clone(&self.reading).try_acquire_owned().map_err(|_| {
            let told = format!("{MOST_READING} slow pages are still being read");
            ToolError::new(ErrorKind::Unavailable, told).try_instead("try again in a minute")
        })?;
        let (done, result) = tokio::sync::oneshot::channel();
        let extract = self.extract;
        let work = move || {
            let _thread = thread;
            let _ = done.send(extract(&source, mode));
        };
        let started = std::thread::Builder::new().name("web-page".into()).stack_size(STACK).spawn(work);
        started.map_err(ToolError::internal)?;
        let advice = "fetch it with `extract_mode` `raw`";
        match tokio::time::timeout(self.pace.limit, self.patient(result, &mut turn)).await {
            Ok(Ok(page)) => page,
            // The thread ended without an answer.
            Ok(Err(_)) => {
                Err(ToolError::failed(format!("the page of `{host}` could not be read")).try_instead(advice))
            }
            Err(_) => {
                let seconds = self.pace.limit.as_secs();
                let told = format!("the page of `{host}` took longer than {seconds} s to read");
                Err(ToolError::new(ErrorKind::TimedOut, told).try_instead(advice))
            }
        }
    }

    /// Waits for work, and releases its turn if that takes long: a slow page must not keep others waiting.
    async fn patient<T>(&self, work: impl Future<Output = T>, turn: &mut Option<OwnedSemaphorePermit>) -> T {
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(self.pace.turn, &mut work).await {
            return done;
        }
        *turn = None;
        work.await
    }
}

/// The error for a server's refusal. The body is left out: it is untrusted text in the place of our own.
fn refused(status: u16, host: &str) -> ToolError {
    let (kind, advice) = match status {
        300..=399 => (ErrorKind::Failed, "the redirect has no target; try another address"),
        401 | 403 => (ErrorKind::Failed, "it denies access; try another source"),
        404 | 410 => (ErrorKind::NotFound, "check the address, or search for the page"),
        429 => (ErrorKind::Unavailable, "wait, then try again"),
        500..=599 => (ErrorKind::Unavailable, "try again later"),
        _ => (ErrorKind::Failed, "try another address"),
    };
    ToolError::new(kind, format!("`{host}` answered with status {status}")).try_instead(advice)
}

/// The error for a request without an answer.
pub(crate) fn unreached(error: NetError) -> ToolError {
    let (kind, advice) = match &error {
        NetError::TimedOut { .. } => (ErrorKind::TimedOut, "try again later, or another source"),
        NetError::NotPublic { .. } => {
            let advice =
                "private addresses are fetched only if the deployment lists them in `web.private_origins`";
            return ToolError::new(ErrorKind::Forbidden, shortened(&error)).try_instead(advice);
        }
        NetError::OwnAddress { .. }
        | NetError::BadUrl { .. }
        | NetError::Gated { .. }
        | NetError::Redirect { .. } => (ErrorKind::Forbidden, "try another address"),
        NetError::TooLarge { .. } => (ErrorKind::Failed, "try a smaller page of the same site"),
        NetError::NoAddress { .. } => (ErrorKind::NotFound, "check the host's name"),
        _ => (ErrorKind::Unavailable, "try again later, or another source"),
    };
    ToolError::new(kind, error.to_string()).try_instead(advice)
}

fn shortened(error: &NetError) -> String {
    match error {
        NetError::NotPublic { host, address, why } if *host == address.to_string() => {
            format!("{address} is {why}, and is not fetched")
        }
        NetError::NotPublic { host, address, why } => {
            format!("`{host}` is at {address}, which is {why}, and is not fetched")
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
