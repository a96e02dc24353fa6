//! Wrong tokens: they are slowed down, and valid ones are not.

use sessile_server::account::TokenScope;
use sessile_server::serve::Options;
use sessile_server::users;

use super::{Client, TestServer, server, started};

/// Sends wrong tokens; how many of them were looked up, and the last answer.
fn guess(nobody: &Client, count: usize) -> (usize, super::Reply) {
    let wrong = |number: usize| Client { secret: Some(format!("sst_{number:043}")), ..nobody.clone() };
    let replies: Vec<_> = (0..count).map(|number| wrong(number).get("/v1/me")).collect();
    let looked_up = replies.iter().filter(|reply| reply.status == 401).count();
    (looked_up, replies.into_iter().last().unwrap())
}

fn assert_guesses_are_slowed(server: &TestServer) {
    let ann = server.user("ann");
    let (looked_up, last) = guess(&server.nobody(), 400);
    assert!(looked_up < 300, "{looked_up} of 400");
    last.refused(429, "RATE_LIMITED");
    assert!(last.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1, "{last:?}");
    // A token that nobody has used yet, from the same address.
    ann.get("/v1/me").ok(200);
    let (new, id) = server.token("ann", &[TokenScope::Read], None);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    guess(&server.nobody(), 20);
    new.get("/v1/me").ok(200);
    server.block_on(users::revoke(&server.db, &id)).unwrap();
    assert!([401, 429].contains(&new.get("/v1/me").status), "a revoked token ends at once");
    ann.get("/v1/me").ok(200);
}

#[test]
fn invalid_tokens_are_rate_limited_and_valid_ones_pass() {
    assert_guesses_are_slowed(&server());
}

#[test]
fn invalid_tokens_behind_a_proxy_are_rate_limited() {
    assert_guesses_are_slowed(&started(Options { behind_proxy: true, ..Options::default() }));
}

#[test]
fn missing_tokens_are_not_counted_as_guesses() {
    let server = server();
    let nobody = server.nobody();
    for _ in 0..400 {
        nobody.get("/v1/me").refused(401, "CREDENTIAL_REJECTED");
    }
}

#[test]
fn wrong_tokens_sent_in_parallel_have_the_same_limit() {
    let server = server();
    let ann = server.user("ann");
    let began = std::time::Instant::now();
    let looked_up: usize = std::thread::scope(|scope| {
        let valid = scope.spawn(|| (0..200).for_each(|_| drop(ann.get("/v1/me").ok(200))));
        let guessing: Vec<_> = (0..64).map(|_| scope.spawn(|| guess(&server.nobody(), 20).0)).collect();
        valid.join().unwrap();
        guessing.into_iter().map(|guessing| guessing.join().unwrap()).sum()
    });
    let allowed = 100 + 5 * (1 + usize::try_from(began.elapsed().as_secs()).unwrap());
    assert!(looked_up <= allowed, "{looked_up} were looked up, {allowed} are allowed");
    ann.get("/v1/me").ok(200);
}

#[test]
fn valid_tokens_sent_in_parallel_are_not_charged() {
    let server = server();
    server.user("ann");
    let clients: Vec<_> = (0..150).map(|_| server.token("ann", &[TokenScope::Read], None).0).collect();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for client in &clients {
                scope.spawn(|| client.get("/v1/me").ok(200));
            }
        });
    }
    let (looked_up, _) = guess(&server.nobody(), 90);
    assert_eq!(looked_up, 90);
}
