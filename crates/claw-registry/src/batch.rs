//! Several calls of one turn: reading ones together, others in order.

use futures_util::StreamExt as _;
use futures_util::stream;

use crate::{Executor, Offer, Reply, Request};

/// How many reading calls run at the same time.
const TOGETHER: usize = 8;

impl Executor {
    /// Takes several calls down the road. Neighbours that only read run together; every other call waits for
    /// those before it and is waited for. The replies come in the order of the requests.
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
