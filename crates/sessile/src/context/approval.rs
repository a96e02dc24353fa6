//! A person's approval of a guarded context: for a bounded time, recorded, revocable.
//!
//! A person approves on a terminal, or in a prompt of an MCP client. The client's answer chooses one of three
//! durations and is recorded with the client's name. It is not accepted if a PIN is set, and no approval is possible
//! inside a session. Sessile cannot verify that a person answered: it relies on the client for that.

use std::cell::OnceCell;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::confirm::can_ask;
use crate::context::identity::ContextIdentity;
use crate::context::pin::{is_pin_set, verify_pin};
use crate::context::{Context, request};
use crate::error::{Error, FileError, GuardError, Result, SessionError, UsageError};
use crate::history::record;
use crate::names::ContextName;
use crate::process::boot_id;
use crate::settings::Node;
use crate::state::State;
use crate::store::{ApprovalRow, NewApproval, Store};
use crate::text::{plain_name, shell_quoted};

/// The longest time one approval can cover.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The longest name of a client that is kept, in characters.
const LONGEST_CLIENT: usize = 60;

/// An approval.
#[derive(Clone, Debug, Serialize)]
pub struct Approval {
    /// Number.
    pub id: i64,
    /// The context it opens.
    pub context: String,
    /// The file of that context; `None` in approvals of older versions, which open nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Time of the grant.
    pub granted_at: String,
    /// Expiry.
    pub expires_at: String,
    /// Time of the revocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    /// Person or process that granted it.
    pub granted_by: String,
    /// On which terminal; `via CLIENT` if a client asked the person.
    pub terminal: String,
    /// Whether with a PIN.
    pub with_pin: bool,
    /// Time left, when the approval was read.
    #[serde(skip)]
    pub time_left: Duration,
}

/// Valid approvals of every context, in every directory.
pub fn in_force(state: &State) -> Result<Vec<Approval>> {
    // What was approved is compared with what the files say by now.
    let is_unchanged = |approval: &NewApproval| {
        let (Some(path), Some(digest)) = (&approval.path, &approval.digest) else { return false };
        let now = ContextIdentity::reload(path, digest, &approval.context);
        now.is_some_and(|now| now.digest == *digest)
    };
    holding(state, state.store()?, None, is_unchanged)
}

/// Valid approvals of a context, by its file and its bindings.
pub fn in_force_of(state: &State, context: &Context) -> Result<Vec<Approval>> {
    in_force_in(state, state.store()?, context)
}

/// The same, as a store says.
pub(super) fn in_force_in(state: &State, store: Option<&Store>, context: &Context) -> Result<Vec<Approval>> {
    // Most contexts have no approval, and the digest is computed only to compare it with one.
    let identity = OnceCell::new();
    holding(state, store, Some(context.name.as_str()), |approval| {
        let identity = identity.get_or_init(|| ContextIdentity::of(context));
        approval.digest.as_ref() == Some(&identity.digest)
    })
}

/// Whether an approval was ever given for the file of a context.
pub(super) fn was_given(store: &Store, path: &Path, name: &ContextName) -> Result<bool> {
    let path = ContextIdentity::path_of(path);
    let is_of_file = |row: &ApprovalRow| {
        row.approval.context == name.as_str()
            // Approvals of older versions have no path, and count for any file of the name.
            && row.approval.path.as_ref().is_none_or(|approved| *approved == path)
    };
    Ok(store.all_approvals()?.iter().any(is_of_file))
}

/// Whether the context that a table of a file defines has a valid approval.
pub(super) fn is_table_approved(state: &State, name: &str, path: &Path, table: &Node) -> Result<bool> {
    let approvals = holding(state, state.store()?, Some(name), |approval| {
        approval.digest.as_ref().is_some_and(|digest| ContextIdentity::is_digest_of(digest, path, table))
    })?;
    Ok(!approvals.is_empty())
}

/// Unexpired approvals that pass a test, of the contexts of one name or of all.
fn holding(
    state: &State,
    store: Option<&Store>,
    name: Option<&str>,
    is_same: impl Fn(&NewApproval) -> bool,
) -> Result<Vec<Approval>> {
    let Some(store) = store else { return Ok(Vec::new()) };
    let now = state.now_ms();
    let (boot, since_boot) = (boot_id(), since_boot_ms(state));
    let rows = store.approvals(name, now)?;
    Ok(rows
        .into_iter()
        .filter(|row| holds(&row.approval, now, &boot, since_boot) && is_same(&row.approval))
        .map(|row| {
            let (wall, boot) = (row.approval.expires_ms - now, row.approval.expires_boot_ms - since_boot);
            let time_left = Duration::from_millis(wall.min(boot).max(0).unsigned_abs());
            Approval { time_left, ..Approval::from(row) }
        })
        .collect())
}

/// Whether an approval holds: by the wall clock, which may have been set back, and by the clock since boot.
fn holds(approval: &NewApproval, now_ms: i64, boot: &str, since_boot_ms: i64) -> bool {
    // Time synchronization may step the clock back a little after the grant.
    const SKEW_MS: i64 = 60_000;
    let by_wall = now_ms < approval.expires_ms && now_ms > approval.granted_ms.saturating_sub(SKEW_MS);
    by_wall && holds_since_boot(approval, boot, since_boot_ms)
}

/// Whether an approval holds by the clock since boot: given in this boot, not later than now, and not over. Without a boot
/// id a smaller number shows a reboot, and only the wall clock counts.
fn holds_since_boot(approval: &NewApproval, boot: &str, since_boot_ms: i64) -> bool {
    let time_ms = approval.expires_ms.saturating_sub(approval.granted_ms);
    let is_before_grant = since_boot_ms < approval.expires_boot_ms.saturating_sub(time_ms);
    approval.boot == boot && since_boot_ms < approval.expires_boot_ms && (boot.is_empty() || !is_before_grant)
}

/// Every approval that was ever given, the newest first.
pub fn all(state: &State) -> Result<Vec<Approval>> {
    let rows = state.store()?.map(|store| store.all_approvals()).transpose()?.unwrap_or_default();
    Ok(rows.into_iter().map(Approval::from).collect())
}

/// Fails unless a person can give an approval here: on a terminal, outside any session, with the machine's clocks.
pub fn check_place(state: &State) -> Result<()> {
    state.refuse_in_session("approving a context", "approve it on a terminal outside the session")?;
    check_clock(state)?;
    if can_ask(state) && state.call().interactive_terminal().is_some() {
        return Ok(());
    }
    Err(UsageError::TerminalRequired {
        what: "approving a context".into(),
        instead: "ask a person to run the command on a terminal".into(),
    }
    .into())
}

/// Fails if the clock since boot is not the machine's, so that neither the time of an approval nor the lockout of the PIN
/// could be measured.
pub(super) fn check_clock(state: &State) -> Result<()> {
    if state.world().is_boot_clock_shifted() {
        return Err(UsageError::ShiftedClock { what: "approving a context".into() }.into());
    }
    Ok(())
}

/// Checks before the prompt that [`grant`] can succeed. Returns the context that the prompt describes.
pub fn check_grant(state: &State, name: &ContextName, time: Duration) -> Result<Context> {
    check_place(state)?;
    let context = state.contexts().get(name)?;
    context.require_trust(state)?;
    check_time(time)?;
    Ok(context)
}

/// Grants an approval. If a PIN is set, `pin` must match.
pub fn grant(state: &State, name: &ContextName, time: Duration, pin: Option<&str>) -> Result<Approval> {
    let context = check_grant(state, name, time)?;
    // After the other checks: an attempt is counted, and must not be spent on a call that fails anyway.
    let with_pin = verify_pin(state, pin)?;
    give(state, &context, time, GrantMeans::OnTerminal { with_pin })
}

/// Grants an approval that a person gave through an MCP client. Sessile cannot verify that the client asked a person.
/// A PIN restricts approvals to terminals.
pub fn grant_through(state: &State, name: &ContextName, time: Duration, client: &str) -> Result<Approval> {
    let context = check_grantable(state, name)?;
    check_time(time)?;
    // The client chooses its own name, which ends up in the history and on terminals.
    let client = match plain_name(client, LONGEST_CLIENT) {
        empty if empty.is_empty() => "an unnamed client".to_owned(),
        named => named,
    };
    give(state, &context, time, GrantMeans::Through { client })
}

/// Checks before the prompt that [`grant_through`] can succeed. Returns the context that the prompt describes.
pub fn check_grantable(state: &State, name: &ContextName) -> Result<Context> {
    // What runs in a session could start a server of its own, and answer its question itself. A server that works in a
    // session by flag is in it too.
    if state.enclosing_session().is_some() || state.args().session.is_some() {
        return Err(SessionError::RefusedInside {
            what: "approving a context".into(),
            instead: "approve it on a terminal outside the session",
        }
        .into());
    }
    check_clock(state)?;
    let context = state.contexts().get(name)?;
    context.require_trust(state)?;
    // A PIN is typed on a terminal and goes through no program.
    if is_pin_set(state)? {
        let command = format!("{} context approve {}", state.app().name(), shell_quoted(name.as_str()));
        return Err(UsageError::TerminalRequired {
            what: "approving a context with a PIN".into(),
            instead: format!("a person must run `{command}` on a terminal"),
        }
        .into());
    }
    Ok(context)
}

/// Fails if a context changed during the prompt, by its [`Context::digest`] from before: a prompt may stay open for
/// long.
pub fn check_unchanged(state: &State, name: &ContextName, digest: &str) -> Result<()> {
    let context = state.contexts().get(name)?;
    if context.digest() == digest {
        return Ok(());
    }
    Err(FileError::ConcurrentChange { path: context.path().to_owned(), kept: None }.into())
}

/// Fails unless a context can be approved for this time.
fn check_time(time: Duration) -> Result<()> {
    if time.is_zero() || time > LONGEST {
        return Err(UsageError::InvalidValue {
            place: "--for".into(),
            value: crate::duration::short(time),
            expected: "between a second and 24 hours".into(),
        }
        .into());
    }
    Ok(())
}

/// Means of a grant.
enum GrantMeans {
    OnTerminal { with_pin: bool },
    Through { client: String },
}

fn give(state: &State, context: &Context, time: Duration, given: GrantMeans) -> Result<Approval> {
    let name = &context.name;
    let identity = ContextIdentity::of(context);
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let now = state.now_ms();
    let subject = format!("{name} for {}", crate::duration::short(time));
    let (terminal, with_pin, subject) = match given {
        GrantMeans::OnTerminal { with_pin } => {
            let device = state.world().terminal().map(|terminal| terminal.device.display().to_string());
            (device.unwrap_or_default(), with_pin, subject)
        }
        GrantMeans::Through { client } => (format!("via {client}"), false, format!("{subject} via {client}")),
    };
    let new = NewApproval {
        context: name.to_string(),
        granted_ms: now,
        expires_ms: now.saturating_add(millis(time)),
        boot: boot_id(),
        expires_boot_ms: since_boot_ms(state).saturating_add(millis(time)),
        granted_by: state.world().user_name(),
        terminal,
        with_pin,
        path: Some(identity.path),
        digest: Some(identity.digest),
    };
    let id = state.store_for_writing()?.add_approval(&new)?;
    record(state, "context approve", &subject, "approvals expire or are revoked")?;
    // The approval holds already, so a stale list of requests is only a warning.
    if let Err(error) = request::settle(state, name.as_str()) {
        state.warn(format!("the requests of context {name} stay listed: {error}"), None);
    }
    Ok(ApprovalRow { id, approval: new, revoked_ms: None }.into())
}

/// Revokes the approvals of a context, whatever the wall clock says, and returns how many may have been valid. It
/// requires no person, because it only reduces access.
pub fn revoke(state: &State, name: &ContextName) -> Result<usize> {
    let not_found = || Error::Guard(GuardError::ApprovalNotFound(name.to_string()));
    // A store that nobody has made yet holds no approval, and is not made for this.
    state.store()?.ok_or_else(not_found)?;
    // First of all: a failure afterwards leaves the context shut.
    let count = revoke_unrecorded(state, name)?;
    if count == 0 {
        return Err(not_found());
    }
    if let Err(error) = state.withdraw_unapproved(Some(name)) {
        state.warn(format!("the targets of context {name} stay in a room: {error}"), error.hint(state.app()));
    }
    record(state, "context approve", &format!("{name} --revoke"), "approve the context again")?;
    Ok(count)
}

/// Revokes the approvals of a context as part of another change, which is recorded instead.
pub(crate) fn revoke_unrecorded(state: &State, name: &ContextName) -> Result<usize> {
    let mut store = state.store_for_writing()?;
    store.revoke_approvals(name.as_str(), state.now_ms(), &boot_id(), since_boot_ms(state))
}

/// Milliseconds since the machine started.
pub(super) fn since_boot_ms(state: &State) -> i64 {
    i64::try_from(state.world().since_boot().as_millis()).unwrap_or(i64::MAX)
}

impl From<ApprovalRow> for Approval {
    fn from(row: ApprovalRow) -> Self {
        Approval {
            id: row.id,
            context: row.approval.context,
            path: row.approval.path,
            granted_at: rfc3339(row.approval.granted_ms),
            expires_at: rfc3339(row.approval.expires_ms),
            // One that had expired by the clock since boot is stored as revoked at its end; nobody revoked
            // it.
            revoked_at: row.revoked_ms.filter(|at| *at != row.approval.expires_ms).map(rfc3339),
            granted_by: row.approval.granted_by,
            terminal: row.approval.terminal,
            with_pin: row.approval.with_pin,
            time_left: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ContextError, ProjectError};

    fn approval() -> NewApproval {
        NewApproval {
            context: "prod".into(),
            granted_ms: 1_000_000,
            expires_ms: 2_000_000,
            boot: "b1".into(),
            expires_boot_ms: 500_000,
            granted_by: "alice".into(),
            terminal: "/dev/pts/1".into(),
            with_pin: false,
            path: None,
            digest: None,
        }
    }

    #[test]
    fn setting_the_clock_back_extends_nothing() {
        assert!(holds(&approval(), 1_500_000, "b1", 100_000));
        assert!(!holds(&approval(), 2_000_000, "b1", 100_000), "over by the wall clock");
        assert!(!holds(&approval(), 1_500_000, "b1", 500_000), "over by the boot clock");
        assert!(!holds(&approval(), 500_000, "b1", 0), "from the future");
    }

    #[test]
    fn clock_since_boot_before_the_grant_shuts_the_context() {
        let approval = NewApproval { expires_boot_ms: 1_500_000, ..approval() };
        assert!(holds(&approval, 1_000_000, "b1", 500_000), "at the moment of the grant");
        for since_boot_ms in [499_999, 0] {
            assert!(!holds(&approval, 1_000_000, "b1", since_boot_ms), "{since_boot_ms}");
        }
    }

    #[test]
    fn reboot_ends_an_approval() {
        for boot in ["b2", ""] {
            for since_boot_ms in [0, 100_000, 900_000] {
                assert!(!holds(&approval(), 1_500_000, boot, since_boot_ms), "{boot:?} {since_boot_ms}");
            }
        }
        let unknown = NewApproval { boot: String::new(), ..approval() };
        assert!(!holds(&unknown, 1_500_000, "b2", 100_000));
    }

    #[test]
    fn without_boot_ids_the_wall_clock_ends_an_approval() {
        let approval = NewApproval { boot: String::new(), expires_boot_ms: 1_500_000, ..approval() };
        assert!(holds(&approval, 1_500_000, "", 1_000_000));
        assert!(holds(&approval, 1_500_000, "", 10_000), "a smaller number shows a reboot");
        assert!(!holds(&approval, 1_500_000, "", 1_500_000));
        assert!(!holds(&approval, 2_000_000, "", 10_000));
    }

    const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

    /// A guarded context `prod` in a directory.
    fn guarded(contexts: &Path) {
        std::fs::create_dir_all(contexts).unwrap();
        let mut file = std::fs::File::create_new(contexts.join("prod.toml")).unwrap();
        std::io::Write::write_all(&mut file, b"guard = \"approval\"\n").unwrap();
    }

    /// A state with a guarded context `prod`, on no terminal.
    fn state(home: &Path) -> State {
        guarded(&home.join(".config/sessile/contexts"));
        let world = crate::World::empty().with_home(home);
        State::open(&crate::App::new("sessile"), world, crate::StateArgs::default()).unwrap()
    }

    fn prod() -> ContextName {
        "prod".parse().unwrap()
    }

    #[test]
    fn approval_through_a_client_names_it_and_is_valid() {
        let home = tempfile::tempdir().unwrap();
        let state = state(home.path());
        assert!(matches!(
            grant(&state, &prod(), HALF_AN_HOUR, None),
            Err(Error::Usage(UsageError::TerminalRequired { .. }))
        ));
        let client = format!("Cur\u{1b}[2Jsor\n{}", "x".repeat(200));
        let given = grant_through(&state, &prod(), HALF_AN_HOUR, &client).unwrap();
        assert!(given.terminal.starts_with("via Cur[2Jsorxxx"), "{}", given.terminal);
        assert!(given.terminal.chars().count() < 80 && !given.with_pin, "{}", given.terminal);
        let in_force = in_force(&state).unwrap();
        assert_eq!((in_force.len(), &in_force[0].terminal), (1, &given.terminal));
        let history = crate::history::list(&state, &Default::default()).unwrap();
        assert_eq!(history[0].subject, format!("prod for 30 min {}", given.terminal));
        let unnamed = grant_through(&state, &prod(), HALF_AN_HOUR, "\n").unwrap();
        assert_eq!(unnamed.terminal, "via an unnamed client");
    }

    #[test]
    fn approval_without_identity_counts_as_lapsed() {
        let home = tempfile::tempdir().unwrap();
        let state = state(home.path());
        grant_through(&state, &prod(), HALF_AN_HOUR, "c").unwrap();
        let context = state.contexts().get(&prod()).unwrap();
        assert_eq!(in_force_of(&state, &context).unwrap().len(), 1);
        let connection = state.store_for_writing().unwrap().into_connection().unwrap();
        connection.execute("UPDATE approval SET path = NULL, digest = NULL", []).unwrap();
        assert!(in_force_of(&state, &context).unwrap().is_empty());
        assert!(in_force(&state).unwrap().is_empty());
        assert_eq!(all(&state).unwrap().len(), 1, "the approval stays on record");
    }

    #[test]
    fn through_a_client_the_same_is_refused_as_on_a_terminal() {
        let home = tempfile::tempdir().unwrap();
        let state = state(home.path());
        check_grantable(&state, &prod()).unwrap();
        for time in [Duration::ZERO, LONGEST + Duration::from_secs(1)] {
            let refused = grant_through(&state, &prod(), time, "c");
            assert!(matches!(refused, Err(Error::Usage(UsageError::InvalidValue { .. }))), "{time:?}");
        }
        let other = "other".parse().unwrap();
        for refused in [
            check_grantable(&state, &other).map(drop),
            grant_through(&state, &other, HALF_AN_HOUR, "c").map(drop),
        ] {
            assert!(matches!(refused, Err(Error::Context(ContextError::NotFound { .. }))), "{refused:?}");
        }
        assert!(in_force(&state).unwrap().is_empty());
    }

    #[test]
    fn through_a_client_nothing_is_approved_with_a_shifted_clock() {
        let home = tempfile::tempdir().unwrap();
        guarded(&home.path().join(".config/sessile/contexts"));
        let world = crate::World::empty().with_home(home.path()).with_shifted_boot_clock();
        let state = State::open(&crate::App::new("sessile"), world, crate::StateArgs::default()).unwrap();
        let refused = grant_through(&state, &prod(), HALF_AN_HOUR, "c");
        assert!(matches!(refused, Err(Error::Usage(UsageError::ShiftedClock { .. }))), "{refused:?}");
        assert!(all(&state).unwrap().is_empty());
    }

    #[test]
    fn no_client_asks_for_a_pin() {
        let home = tempfile::tempdir().unwrap();
        let state = state(home.path());
        check_grantable(&state, &prod()).unwrap();
        // Set by another process, after this state has looked.
        let world = crate::World::empty().with_home(home.path());
        let elsewhere = State::open(&crate::App::new("sessile"), world, crate::StateArgs::default()).unwrap();
        elsewhere.store_for_writing().unwrap().set_pin(None, Some("hash")).unwrap();
        for refused in [
            check_grantable(&state, &prod()).map(drop),
            grant_through(&state, &prod(), HALF_AN_HOUR, "c").map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Usage(UsageError::TerminalRequired { .. })), "{error}");
            let hint = error.hint(state.app()).unwrap();
            assert!(hint.contains("`sessile context approve prod` on a terminal"), "{hint}");
        }
        assert!(all(&state).unwrap().is_empty());
    }

    #[test]
    fn a_stranger_s_context_is_not_approved_through_a_client() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        guarded(&project.join(".sessile/contexts"));
        let world = crate::World::empty().with_home(home.path()).with_cwd(&project);
        let state = State::open(&crate::App::new("sessile"), world, crate::StateArgs::default()).unwrap();
        assert!(matches!(
            check_grantable(&state, &prod()),
            Err(Error::Project(ProjectError::Untrusted { .. }))
        ));
        let refused = grant_through(&state, &prod(), HALF_AN_HOUR, "c");
        assert!(matches!(refused, Err(Error::Project(ProjectError::Untrusted { .. }))));
    }
}
