//! Letting a machine in by a code, in each store.

use sessile_server::account::{LoginDecision, NewLogin, NewTokenHash, TokenScope};
use sessile_server::ids::SecretHash;
use sessile_server::login::{self, LoginCodes, LoginOutcome};
use sessile_server::store::ServiceStore;
use sessile_server::users::{self, UserError};

use crate::stores::{Throwaway, id};
use crate::suite::with_every_store;

with_every_store! {
    approved_login_is_collected_once
    login_is_denied_before_or_after_approval
    concurrent_collectors_get_one_token
    unknown_or_expired_login_is_not_found
    pending_logins_are_limited
    store_contains_no_secret_of_a_login
}

async fn begun(db: &ServiceStore) -> LoginCodes {
    login::begin(db, "ann's laptop", Some("10.0.0.7".to_owned()), 1000).await.unwrap().unwrap()
}

/// Hash of a code or token, which is the same for the same name.
fn hash(kind: &str, name: &str) -> SecretHash {
    SecretHash::of(&format!("{kind} of {name}"))
}

fn approve(user: &str, expires_ms: Option<i64>) -> LoginDecision {
    LoginDecision::Approve { user: user.parse().unwrap(), scopes: vec![TokenScope::Read], expires_ms }
}

async fn collect(db: &ServiceStore, begun: &LoginCodes) -> LoginOutcome {
    login::collect(db, begun.device_code.expose()).await.unwrap()
}

async fn approved_login_is_collected_once(store: &Throwaway) {
    let (db, admin) = (&store.db, &store.another().await);
    users::add(db, "ann").await.unwrap();
    let login = begun(db).await;
    assert!(matches!(collect(db, &login).await, LoginOutcome::Pending));
    let found = login::find(admin, &login.user_code.to_lowercase()).await.unwrap();
    assert_eq!((found.client.as_str(), found.peer.as_deref()), ("ann's laptop", Some("10.0.0.7")));
    assert_eq!(found.expires_ms - found.asked_ms, login::LIFE_MS);
    assert!(!found.is_approved && found.asked_ms > 0);
    let nobody = login::decide(admin, &login.user_code, approve("nobody", None)).await;
    assert!(matches!(nobody, Err(UserError::NoUser(_))), "{nobody:?}");
    let nothing =
        LoginDecision::Approve { user: "ann".parse().unwrap(), scopes: Vec::new(), expires_ms: None };
    let nothing = login::decide(admin, &login.user_code, nothing).await;
    assert!(matches!(nothing, Err(UserError::NoScope)), "{nothing:?}");
    assert!(matches!(collect(db, &login).await, LoginOutcome::Pending));
    let expires = Some(found.asked_ms + 3_600_000);
    login::decide(admin, &login.user_code, approve("ann", expires)).await.unwrap();
    let again = login::decide(admin, &login.user_code, approve("ann", None)).await;
    assert!(matches!(again, Err(UserError::NoLogin(_))), "{again:?}");
    assert!(users::tokens(db, &"ann".parse().unwrap()).await.unwrap().is_empty(), "none was made yet");
    let LoginOutcome::Token(token, secret) = collect(db, &login).await else { panic!() };
    assert_eq!(
        (token.user.as_str(), &token.scopes[..], token.expires_ms),
        ("ann", &[TokenScope::Read][..], expires)
    );
    assert_eq!(users::tokens(db, &token.user).await.unwrap(), std::slice::from_ref(&token));
    assert!(secret.expose().starts_with("sst_"));
    for db in [db, admin] {
        assert!(
            matches!(collect(db, &login).await, LoginOutcome::Nothing),
            "the token was already collected"
        );
        assert!(matches!(login::find(db, &login.user_code).await, Err(UserError::NoLogin(_))));
        let late = login::decide(db, &login.user_code, LoginDecision::Deny).await;
        assert!(matches!(late, Err(UserError::NoLogin(_))), "{late:?}");
    }
}

async fn login_is_denied_before_or_after_approval(store: &Throwaway) {
    let db = &store.db;
    users::add(db, "ann").await.unwrap();
    for is_approved in [false, true] {
        let login = begun(db).await;
        if is_approved {
            login::decide(db, &login.user_code, approve("ann", None)).await.unwrap();
            assert!(login::find(db, &login.user_code).await.unwrap().is_approved);
        }
        login::decide(db, &login.user_code, LoginDecision::Deny).await.unwrap();
        for _ in 0..2 {
            assert!(matches!(collect(db, &login).await, LoginOutcome::Denied));
        }
        for late in [LoginDecision::Deny, approve("ann", None)] {
            let late = login::decide(db, &login.user_code, late).await;
            assert!(matches!(late, Err(UserError::NoLogin(_))), "{late:?}");
        }
    }
    assert!(users::tokens(db, &"ann".parse().unwrap()).await.unwrap().is_empty());
}

async fn concurrent_collectors_get_one_token(store: &Throwaway) {
    users::add(&store.db, "ann").await.unwrap();
    let others = [store.db.clone(), store.another().await];
    for _ in 0..5 {
        let login = begun(&store.db).await;
        login::decide(&store.db, &login.user_code, approve("ann", None)).await.unwrap();
        let code = login.device_code.expose().to_owned();
        let asking: Vec<_> = (0..16)
            .map(|number| {
                let (db, code) = (others[number % 2].clone(), code.clone());
                tokio::spawn(async move { login::collect(&db, &code).await.unwrap() })
            })
            .collect();
        let mut collected = 0;
        for one in asking {
            match one.await.unwrap() {
                LoginOutcome::Token(..) => collected += 1,
                LoginOutcome::Nothing => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(collected, 1);
    }
    assert_eq!(users::tokens(&store.db, &"ann".parse().unwrap()).await.unwrap().len(), 5);
}

async fn unknown_or_expired_login_is_not_found(store: &Throwaway) {
    let db = &store.db;
    users::add(db, "ann").await.unwrap();
    for code in ["", "ssd_", "ssd_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "nul\u{0}"] {
        assert!(matches!(login::collect(db, code).await.unwrap(), LoginOutcome::Nothing), "{code}");
    }
    for code in ["BCDF-GHJK", "", "'; DROP TABLE login; --"] {
        assert!(matches!(login::find(db, code).await, Err(UserError::NoLogin(_))), "{code}");
        let decided = login::decide(db, code, approve("ann", None)).await;
        assert!(matches!(decided, Err(UserError::NoLogin(_))), "{code}: {decided:?}");
    }
    let asked = |name: &str, lives_ms| NewLogin {
        device_hash: hash("device", name),
        code_hash: hash("code", name),
        client: name.to_owned(),
        peer: None,
        lives_ms,
    };
    let short = 400;
    for name in ["pending", "approved"] {
        assert!(db.begin_login(asked(name, short), 10).await.unwrap());
    }
    let approved =
        sessile_server::account::AccountChange::Decide(hash("code", "approved"), approve("ann", None));
    assert_eq!(db.administer(approved).await.unwrap(), Ok(()));
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for name in ["pending", "approved"] {
        assert_eq!(db.login(&hash("code", name)).await.unwrap(), None);
        let minted = NewTokenHash { id: id().as_str().parse().unwrap(), hash: hash("token", name) };
        let collected = db.collect_login(&hash("device", name), minted).await.unwrap();
        assert_eq!(collected, sessile_server::account::LoginCollection::Nothing);
    }
    let late = sessile_server::account::AccountChange::Decide(hash("code", "pending"), approve("ann", None));
    assert!(db.administer(late).await.unwrap().is_err());
    assert!(users::tokens(db, &"ann".parse().unwrap()).await.unwrap().is_empty());
}

async fn pending_logins_are_limited(store: &Throwaway) {
    let db = &store.db;
    let asked = |name: &str, lives_ms| NewLogin {
        device_hash: hash("device", name),
        code_hash: hash("code", name),
        client: name.to_owned(),
        peer: None,
        lives_ms,
    };
    for name in ["a", "b"] {
        assert!(db.begin_login(asked(name, 400), 3).await.unwrap());
    }
    assert!(db.begin_login(asked("c", 60_000), 3).await.unwrap());
    assert!(!db.begin_login(asked("d", 60_000), 3).await.unwrap(), "three logins are pending");
    assert!(!db.begin_login(asked("c", 60_000), 9).await.unwrap(), "a pending code is unique");
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for name in ["d", "e"] {
        assert!(db.begin_login(asked(name, 60_000), 3).await.unwrap(), "two logins have expired");
    }
    assert!(!db.begin_login(asked("f", 60_000), 3).await.unwrap());
    assert!(db.login(&hash("code", "c")).await.unwrap().is_some());
}

async fn store_contains_no_secret_of_a_login(store: &Throwaway) {
    let db = &store.db;
    users::add(db, "ann").await.unwrap();
    let (waiting, done) = (begun(db).await, begun(db).await);
    for login in [&waiting, &done] {
        login::decide(db, &login.user_code, approve("ann", None)).await.unwrap();
    }
    let LoginOutcome::Token(_, token) = collect(db, &done).await else { panic!() };
    let kept = store.text();
    assert!(kept.contains("ann's laptop"), "the search covers the store's text");
    for login in [&waiting, &done] {
        let code = &login.user_code;
        for secret in [login.device_code.expose(), code, &code.replace('-', "")] {
            assert!(!kept.contains(secret.trim_start_matches("ssd_")), "{secret}");
        }
    }
    assert!(!kept.contains(token.expose().trim_start_matches("sst_")));
}
