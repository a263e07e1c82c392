//! The answer to an append, for tasks and for threads.

use super::error::LedgerError;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tokio::sync::oneshot;

/// Comes true when the facts are durable: the last one's number. Dropping it takes nothing back.
#[must_use = "facts are not durable before this is"]
#[derive(Debug)]
pub struct Pending(pub(super) oneshot::Receiver<Result<u64, LedgerError>>);

impl Future for Pending {
    type Output = Result<u64, LedgerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|a| a.unwrap_or(Err(LedgerError::Closed)))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Pending {
    /// Blocks this thread. Never on an async executor's.
    ///
    /// # Errors
    /// [`LedgerError`]: the first error of the writer, whoever met it.
    pub fn wait(self) -> Result<u64, LedgerError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let (mut this, mut cx) = (pin!(self), Context::from_waker(&waker));
        loop {
            match this.as_mut().poll(&mut cx) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}
