//! Telling a client that a call still goes on. Most give up on a call of which they hear nothing.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use sessile::text::{shortened, shown};
use tokio::sync::watch;

use crate::output::StderrLine;

/// Interval of progress notifications.
const EVERY: Duration = Duration::from_secs(1);

/// Sends progress notifications with the elapsed time and the last printed line, until it is dropped. A client that
/// requested no progress gets none.
pub(super) async fn tell(
    context: &RequestContext<RoleServer>,
    mut latest: watch::Receiver<Option<String>>,
) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let begun = Instant::now();
    loop {
        // First a pause: most calls end within it, and need no notification.
        tokio::time::sleep(EVERY).await;
        let mut progress = ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64());
        let line = latest.borrow_and_update().as_deref().map(readable);
        progress.message = Some(line.unwrap_or_else(|| "in progress".to_owned()));
        // A client that has gone is noticed by the call itself.
        if context.peer.notify_progress(progress).await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Text of a note of this program, else the line.
fn readable(line: &str) -> String {
    match StderrLine::parse(line) {
        Some(StderrLine::Note(note)) => shortened(&shown(note), 200),
        _ => shortened(&shown(line), 200),
    }
}
