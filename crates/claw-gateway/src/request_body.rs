//! Limits the body of a request: its size, and the time that a client has to send it. Without a time limit, a client that sends a
//! byte now and then would hold its place forever.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 8 * 1024 * 1024;
/// The longest a client may take to send the body of a request.
const LONGEST_SENDING: Duration = Duration::from_secs(30);

/// The body was not sent in time.
#[derive(Debug)]
pub(crate) struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body was not received within {} seconds", LONGEST_SENDING.as_secs())
    }
}

impl Error for TooSlow {}

/// Returns whether an error is, or comes from, a body that was not sent in time.
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A body that fails once its time is over.
struct Timed {
    body: Body,
    until: Instant,
    /// Set once the body has to be waited for: most are there with the head.
    time: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if polled.is_pending() {
            let time = this.time.get_or_insert_with(|| Box::pin(sleep_until(this.until)));
            if time.as_mut().poll(context).is_ready() {
                return Poll::Ready(Some(Err(axum::Error::new(TooSlow))));
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Limits the size of a request's body, and the time in which it must be sent.
pub(crate) fn limit(mut request: Request) -> Request {
    DefaultBodyLimit::max(LONGEST_BODY).apply(&mut request);
    if request.body().is_end_stream() {
        return request;
    }
    let until = Instant::now() + LONGEST_SENDING;
    request.map(|body| Body::new(Timed { body, until, time: None }))
}
