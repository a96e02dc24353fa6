//! How much gets through; the number is for who runs it with `--no-capture`.

use std::time::Instant;

use serde_json::json;

use super::with;

#[test]
fn appends_of_many_clients_share_the_wait_for_the_disk() {
    let server = with(|limits| (limits.rate, limits.burst) = (1e9, 1e9));
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let client = server.user(&format!("u{number}"));
            let session = client.session();
            (client, session)
        })
        .collect();
    let began = Instant::now();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|(client, session)| {
            std::thread::spawn(move || {
                for number in 0..100 {
                    let body =
                        json!({ "messages": [{ "role": "user", "content": format!("message {number}") }] });
                    client.post(&format!("{session}/messages"), &body).ok(201);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let rate = 1600.0 / began.elapsed().as_secs_f64();
    println!("{rate:.0} appends per second of 16 clients");
    assert!(rate > 50.0, "{rate}");
}
