//! `/readyz`: whether requests should be sent here.

use std::time::{Duration, Instant};

use sessile_server::serve::{Log, Options, Server};

use super::{Client, server};
use crate::stores::Throwaway;

/// Until `/readyz` answers with a status.
fn wait_for(client: &Client, status: u16) {
    let began = Instant::now();
    loop {
        let reply = client.get("/readyz");
        if reply.status == status {
            if status != 200 {
                reply.refused(503, "UNREACHABLE");
            }
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{reply:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn store_that_takes_no_write_is_not_ready() {
    let server = server();
    let nobody = server.nobody();
    nobody.get("/readyz").ok(200);
    let store = rusqlite::Connection::open(server.dir().join("service.db")).unwrap();
    store.busy_timeout(Duration::from_secs(5)).unwrap();
    // What SQLite says when a disk is full, for every write of the process itself.
    let full = "CREATE TRIGGER full_insert BEFORE INSERT ON process BEGIN SELECT RAISE(FAIL, 'disk is full'); END;
                CREATE TRIGGER full_update BEFORE UPDATE ON process BEGIN SELECT RAISE(FAIL, 'disk is full'); END;";
    store.execute_batch(full).unwrap();
    wait_for(&nobody, 503);
    store.execute_batch("DROP TRIGGER full_insert; DROP TRIGGER full_update;").unwrap();
    wait_for(&nobody, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_database_is_not_ready() {
    let store = Throwaway::postgres().await;
    let options = Options { listen: "127.0.0.1:0".parse().unwrap(), log: Log::Off, ..Options::default() };
    let server = Server::bind(store.db.clone(), options, Box::new(std::io::sink())).await.unwrap();
    let base = format!("http://{}", server.address());
    let serving = tokio::spawn(server.serve(std::future::pending()));
    let client = Client::anonymous(base);
    let set = |mode: &str| {
        let name = store.database().sql("SELECT current_database()");
        store.database().sql(&format!(
            "BEGIN READ WRITE; ALTER DATABASE \"{name}\" SET default_transaction_read_only = {mode}; COMMIT"
        ));
        let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        store.database().sql(others);
    };
    tokio::task::block_in_place(|| {
        wait_for(&client, 200);
        set("on");
        wait_for(&client, 503);
        set("off");
        wait_for(&client, 200);
    });
    serving.abort();
}
