//! History of a user's changes at a service.

use sessile_wire::service::HistoryPage;

use super::error::Subject;
use super::session::{Remote, cursor};
use crate::error::Failure;
use crate::view::OperationView;

impl Remote<'_> {
    /// The user's changes, newest first; if the call names a session, only those of the session.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<OperationView>, Failure> {
        let session = match self.named() {
            // A variable does not narrow the list, as on this machine: only a flag does.
            Some((text, false)) => Some(self.find(text, false)?),
            _ => None,
        };
        let mut query = vec![("limit", limit.clamp(1, 1000).to_string())];
        query.extend(session.as_ref().map(|session| ("session", session.id.clone())));
        query.extend(since_ms.map(|since| ("since_ms", since.max(0).to_string())));
        query.extend(after.map(|id| ("cursor", cursor(id))));
        let user = self.server.me()?.user;
        let items =
            self.server.pages::<HistoryPage>(&["v1", "history"], &query, limit, &Subject::default())?;
        Ok(items.into_iter().map(|entry| OperationView::from((entry, user.clone()))).collect())
    }
}
