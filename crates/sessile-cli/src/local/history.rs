//! History of this machine.

use sessile::error::UsageError;
use sessile::history;
use sessile::history::OperationFilter;
use sessile::settings::Layer;

use super::LocalBackend;
use crate::error::Failure;
use crate::view::OperationView;

impl LocalBackend<'_> {
    /// Operations, newest first; if a flag names a session, only those of the session.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<OperationView>, Failure> {
        let before = after.map(|text| {
            text.parse::<i64>().map_err(|_| UsageError::InvalidValue {
                place: "--cursor".into(),
                value: text.to_owned(),
                expected: "the id of an operation".into(),
            })
        });
        let before = before.transpose()?;
        let named = self.cx.state.session()?.filter(|current| current.origin.layer == Layer::Flag);
        let session = named.map(|current| current.session.id.to_string());
        let filter = OperationFilter {
            session: session.as_deref(),
            terminal: None,
            since_ms,
            before,
            after: None,
            limit: Some(limit),
        };
        let operations = history::list(&self.cx.state, &filter)?;
        Ok(operations.into_iter().map(OperationView::from).collect())
    }
}
