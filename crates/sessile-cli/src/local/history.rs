//! History of this machine.

use sessile::error::UsageError;
use sessile::history;
use sessile::history::OperationFilter;
use sessile::session::{Session, StartedCommand};
use sessile::settings::Layer;

use super::LocalBackend;
use crate::error::Failure;
use crate::view::{CommandView, OperationView};

impl LocalBackend<'_> {
    /// Operations, newest first; if a flag names a session, those of the session with its commands.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<OperationView>, Failure> {
        let named = self.cx.state.session()?.filter(|current| current.origin.layer == Layer::Flag);
        if let Some(current) = named {
            return self.session_history(&current.session, since_ms, limit, after);
        }
        let before = after.map(|text| {
            text.parse::<i64>().map_err(|_| UsageError::InvalidValue {
                place: "--cursor".into(),
                value: text.to_owned(),
                expected: "the id of an operation".into(),
            })
        });
        let before = before.transpose()?;
        let filter = OperationFilter {
            session: None,
            terminal: None,
            since_ms,
            before,
            after: None,
            limit: Some(limit),
        };
        let operations = history::list(&self.cx.state, &filter)?;
        Ok(operations.into_iter().map(OperationView::from).collect())
    }

    /// History of a session: its operations, and the commands that were started in it, as long as its room exists.
    fn session_history(
        &self,
        session: &Session,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<OperationView>, Failure> {
        let state = &self.cx.state;
        let id = session.id.to_string();
        let filter = OperationFilter {
            session: Some(&id),
            terminal: None,
            since_ms,
            before: None,
            after: None,
            limit: None,
        };
        let is_asked = |started: &StartedCommand| since_ms.is_none_or(|since| started.at_ms >= since);
        let commands = session.room().commands().into_iter().rev().filter(is_asked);
        let view = |started| OperationView::Command(CommandView::new(started, state.account(), &id));
        let mut all: Vec<OperationView> = commands.map(view).collect();
        all.extend(history::list(state, &filter)?.into_iter().map(OperationView::from));
        all.sort_by_key(|one| std::cmp::Reverse(one.at_ms()));
        if let Some(after) = after {
            let Some(last) = all.iter().position(|one| one.id() == after) else {
                return Err(UsageError::InvalidValue {
                    place: "--cursor".into(),
                    value: after.to_owned(),
                    expected: "the id of an operation or command of the session".into(),
                }
                .into());
            };
            all.drain(..=last);
        }
        all.truncate(limit);
        Ok(all)
    }
}
