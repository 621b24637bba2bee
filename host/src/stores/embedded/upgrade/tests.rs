//! A store of the first format, as its own program wrote it, is read as if it had always had rows.

use redb::Database;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::records::job::JobState;
use crate::records::plugin_life::PluginCommit;
use crate::records::tests::jobs::job;
use crate::stores::Store;

const OWNER: &str = "0123456789abcdef0123456789abcdef";

/// Writes an entry or more into each table.
fn fill(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    let json = |value: Value| value.to_string().into_bytes();
    let key = json!({
        "id": "k", "label": "l", "prefix": "sb_adm_x", "last4": "wxyz", "scopes": ["*"], "per_minute": null,
        "created_at": 1, "expires_at": null, "revoked_at": 5,
    });
    let account = json!({
        "id": "a", "label": "l", "per_second": null, "concurrency": null, "entitlement": null, "created_at": 1,
    });
    let instance = &mut transaction.open_table(INSTANCE)?;
    instance.insert("owner-secret", [9; 32].as_slice())?;
    let keys = &mut transaction.open_table(KEYS)?;
    keys.insert(&[1; 32], json(key).as_slice())?;
    let accounts = &mut transaction.open_table(ACCOUNTS)?;
    accounts.insert("a", json(account).as_slice())?;
    transaction
        .open_table(USAGE)?
        .insert(("k", 24_300, "p/o"), (7, 2))?;
    fill_ledger(transaction)?;
    let name = (OWNER, "p", 77);
    let record = serde_json::to_vec(&job(1)).expect("JSON");
    let jobs = &mut transaction.open_table(JOBS)?;
    jobs.insert(name, record.as_slice())?;
    let items = &mut transaction.open_table(ITEMS)?;
    items.insert((OWNER, "p", 77, 0), ("one", "{\"a\":1}"))?;
    items.insert((OWNER, "p", 77, 1), ("two", "2"))?;
    transaction.open_table(CHECKPOINTS)?.insert(name, "half")?;
    let taken = &mut transaction.open_table(REQUEST_IDS)?;
    taken.insert((OWNER, "p", "r"), (77, "f", 5000))?;
    let plugins = &mut transaction.open_table(PLUGINS)?;
    plugins.insert("p", json(json!({ "plugin": "p" })).as_slice())?;
    let events = &mut transaction.open_table(EVENTS)?;
    events.insert(("p", 4), json(json!({ "event": "active" })).as_slice())?;
    transaction.open_table(LAST_EVENT)?.insert((), 4)?;
    transaction
        .open_table(DESCRIPTIONS)?
        .insert("digest", "{}")?;
    transaction
        .open_table(CODES)?
        .insert(("engine", "digest"), [3; 32])?;
    transaction
        .open_table(RECORDS)?
        .insert(("p", "key"), (6, b"a\n\0b".as_slice()))?;
    transaction.open_table(USED)?.insert("p", (71, 1, 6))?;
    Ok(())
}

fn fill_ledger(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    let reserved = (24_300, 5, 100, "k", "p/o", "r");
    let reservations = &mut transaction.open_table(RESERVATIONS)?;
    let resolutions = &mut transaction.open_table(RESOLUTIONS)?;
    for id in 1..=4 {
        reservations.insert(("a", id), reserved)?;
    }
    for (id, number) in [(1, 1), (2, 2), (3, 3)] {
        resolutions.insert(("a", id), (number, 110))?;
    }
    transaction
        .open_table(BALANCES)?
        .insert(("a", 24_300), (5, 5))?;
    transaction
        .open_table(SPENT)?
        .insert(("a", 24_300, "k", "p/o"), 5)?;
    transaction
        .open_table(BURNT)?
        .insert(("a", "k", "name"), (3, 100))?;
    Ok(())
}

/// The data folder of an earlier program.
fn earlier() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let database = Database::create(folder.path().join("switchbay.redb")).expect("a file");
    let transaction = database.begin_write().expect("a transaction");
    fill(&transaction).expect("written");
    transaction.commit().expect("written");
    folder
}

#[tokio::test]
async fn callers_and_their_credits_are_as_they_were() {
    let folder = earlier();
    // Once to upgrade, and once more.
    drop(Store::open(folder.path()).await.expect("a store"));
    let store = Store::open(folder.path()).await.expect("a store");
    assert_eq!(store.owner_secret(), [9; 32]);
    let key = store.key(&[1; 32]).await.expect("readable");
    assert_eq!(key.expect("it is kept").revoked_at, Some(5));
    let account = store.account("a").await.expect("readable");
    assert_eq!(account.expect("it is kept").label, "l");
    let month = Month::from_number(24_300);
    let counts = store.usage_of("k", month).await.expect("readable");
    assert_eq!((counts.len(), counts[0].count.calls), (1, 7));
    let audit = store.audit().await.expect("readable");
    assert_eq!((audit.reservations, audit.pending), (4, 1));
    assert_eq!(audit.told, Vec::<String>::new());
    let burnt = store.burnt("a", "k", "name", 200).await.expect("readable");
    assert!(burnt.is_some());
    assert_eq!(store.expire_all(300).await.expect("written"), 1);
    let balance = store.balance("a", month).await.expect("readable");
    assert_eq!((balance.posted, balance.pending), (5, 0));
}

#[tokio::test]
async fn jobs_and_plugins_are_as_they_were() {
    let folder = earlier();
    let store = Store::open(folder.path()).await.expect("a store");
    let jobs = store.jobs().await.expect("readable");
    let (name, job) = jobs.first().expect("it is kept");
    assert_eq!((jobs.len(), job.state), (1, JobState::Pending));
    let page = store.job_items(name, 0, 9, 99).await.expect("readable");
    assert_eq!(page.items[0].1, "{\"a\":1}");
    let keys = store.job_item_keys(name).await.expect("readable");
    assert_eq!(keys, ["one", "two"]);
    let checkpoint = store.job_checkpoint(name).await.expect("readable");
    assert_eq!(checkpoint.as_deref(), Some("half"));
    let taken = store.earlier_job(name, "r", "f", 4999).await;
    assert!(taken.expect("readable").is_some_and(|taken| taken.is_same));
    let records: Vec<Value> = store.plugins().await.expect("readable");
    assert_eq!(records, [json!({ "plugin": "p" })]);
    let commit = PluginCommit::new("p", &json!({}), &[json!({})]).expect("JSON");
    let committed = store.put_plugin(commit).await;
    assert_eq!(committed.expect("written")[0].id, 5);
    let events = store.plugin_events(None, 0).await.expect("readable");
    assert_eq!(events.len(), 2);
    let described = store.description("digest").await.expect("readable");
    assert_eq!(described.as_deref(), Some("{}"));
    let code = store.code("engine", "digest").await.expect("readable");
    assert_eq!(code, Some([3; 32]));
    let record = store.record(Arc::from("p"), "key".to_owned(), 0).await;
    let record = record.expect("readable").expect("it is kept");
    assert_eq!((record.version, record.value), (6, b"a\n\0b".to_vec()));
    let used = store.records_used().await.expect("readable");
    assert_eq!((used[0].bytes, used[0].last_version), (71, 6));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_fails_the_upgrade_and_changes_nothing() {
    let folder = earlier();
    let open = || Database::open(folder.path().join("switchbay.redb")).expect("a file");
    let put = |value: &[u8]| {
        let transaction = open().begin_write().expect("a transaction");
        let mut accounts = transaction.open_table(ACCOUNTS).expect("a table");
        accounts.insert("b", value).expect("written");
        drop(accounts);
        transaction.commit().expect("written");
    };
    put(b"{\"label\": \"hunter2\"");
    let refused = Store::open(folder.path()).await.err().expect("a fault");
    let told = refused.to_string();
    assert!(
        told.contains("`accounts`") && !told.contains("hunter2"),
        "{told}"
    );
    let transaction = open().begin_write().expect("a transaction");
    let mut accounts = transaction.open_table(ACCOUNTS).expect("a table");
    accounts.remove("b").expect("removed");
    drop(accounts);
    transaction.commit().expect("written");
    let store = Store::open(folder.path()).await.expect("a store");
    assert_eq!(store.accounts().await.expect("readable").len(), 1);
}

#[tokio::test]
async fn a_program_of_before_cannot_take_a_store_of_now_for_an_empty_one() {
    for folder in [earlier(), TempDir::new().expect("a temporary folder")] {
        drop(Store::open(folder.path()).await.expect("a store"));
        let database = Database::open(folder.path().join("switchbay.redb")).expect("a file");
        let transaction = database.begin_write().expect("a transaction");
        let refused = transaction.open_table(INSTANCE).map(drop);
        assert!(
            matches!(refused, Err(redb::TableError::TableTypeMismatch { .. })),
            "{refused:?}"
        );
        drop(transaction);
        drop(database);
        drop(Store::open(folder.path()).await.expect("a store"));
    }
}
