//! Locks of this machine.

use std::time::Duration;

use sessile::State;
use sessile::history::record;
use sessile::lock::{LockHolder, LockMode, LockName};

use super::LocalBackend;
use crate::error::{Failure, Outcome};
use crate::view::{LeaseView, LockView};

/// This process as the holder of a lock.
pub(crate) fn holder(state: &State, purpose: &str) -> Result<LockHolder, Failure> {
    let session = state.session()?.map(|current| current.session.id.to_string());
    Ok(LockHolder::own(state.world(), session, purpose))
}

impl LocalBackend<'_> {
    pub(crate) fn locks(&self) -> Result<Vec<LockView>, Failure> {
        // A list must not create the store.
        let Some(locks) = self.cx.state.locks_for_reading()? else { return Ok(Vec::new()) };
        let found = locks.list()?;
        Ok(found.into_iter().map(LockView::from).collect())
    }

    pub(crate) fn lock(&self, name: &LockName) -> Result<Option<LockView>, Failure> {
        Ok(self.cx.state.locks()?.view(name)?.map(LockView::from))
    }

    pub(crate) fn acquire_lock(
        &self,
        name: &LockName,
        mode: LockMode,
        ttl: Duration,
    ) -> Result<LeaseView, Failure> {
        let state = &self.cx.state;
        let holder = holder(state, "lock acquire")?;
        let mut locks = state.locks()?;
        let token = locks.acquire(name, mode, &holder, ttl)?;
        record(state, "lock acquire", &format!("{name} token {token}"), "release the lock instead")?;
        // Read back, because the lease began when the lock was acquired and not when it was asked for.
        let lock = locks.view(name)?;
        let expires_at = lock.and_then(|lock| lock.with_token(token)?.expires_at.clone());
        Ok(LeaseView { name: name.to_string(), mode, token, expires_at })
    }

    pub(crate) fn renew_lock(
        &self,
        name: &LockName,
        token: i64,
        ttl: Duration,
    ) -> Result<LeaseView, Failure> {
        let state = &self.cx.state;
        let mut locks = state.locks()?;
        let lease = locks.renew(name, token, ttl)?;
        let mode = locks.view(name)?.map_or(LockMode::Exclusive, |lock| lock.mode);
        record(state, "lock renew", &format!("{name} token {token}"), "release the lock instead")?;
        Ok(LeaseView { name: name.to_string(), mode, token, expires_at: lease.expires_at })
    }

    pub(crate) fn release_lock(&self, name: &LockName, token: i64) -> Outcome {
        let state = &self.cx.state;
        state.locks()?.release(name, token)?;
        let remedy = "another holder may have the lock now; acquire it again";
        record(state, "lock release", &format!("{name} token {token}"), remedy)?;
        Ok(())
    }

    pub(crate) fn break_lock(&self, name: &LockName, token: i64, holder: &LockHolder) -> Outcome {
        let state = &self.cx.state;
        state.locks()?.break_lock(name, token)?;
        let subject = format!("{name} token {token} of {}", holder.short());
        record(state, "lock break", &subject, "the holder lost the lock; acquire it again")?;
        Ok(())
    }
}
