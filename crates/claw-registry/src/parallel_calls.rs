//! Executes several calls of one turn: those that only read in parallel, others in order.

use futures_util::StreamExt as _;
use futures_util::stream;

use crate::{Executor, Offer, Reply, Request};

/// Number of reading calls that run in parallel.
const TOGETHER: usize = 8;

impl Executor {
    /// Executes several calls. Adjacent calls that only read run in parallel; every other call waits for
    /// those before it and runs alone. The replies come in the order of the requests.
    pub async fn execute_batch(&self, offer: &Offer, requests: Vec<Request>) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(requests.len());
        let mut reading: Vec<Request> = Vec::new();
        for request in requests {
            if offer.only_reads(&request.tool) {
                reading.push(request);
                continue;
            }
            self.execute_together(offer, &mut reading, &mut replies).await;
            replies.push(self.execute(offer, request).await);
        }
        self.execute_together(offer, &mut reading, &mut replies).await;
        replies
    }

    async fn execute_together(&self, offer: &Offer, requests: &mut Vec<Request>, replies: &mut Vec<Reply>) {
        let calls = requests.drain(..).map(|request| self.execute(offer, request));
        let mut done = stream::iter(calls).buffered(TOGETHER);
        while let Some(reply) = done.next().await {
            replies.push(reply);
        }
    }
}
