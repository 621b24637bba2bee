//! What the rules of accounts promise, without a disk.

use uuid::Uuid;

use super::table::RowTable;
use crate::records::account::{self, Account, Entitlement};
use crate::records::recent::RecentChanges;

#[test]
fn an_entitlement_that_is_given_again_takes_no_later_one_away() {
    let mut table = RowTable::default();
    let account = Account {
        id: "a".to_owned(),
        label: String::new(),
        per_second: None,
        concurrency: None,
        entitlement: None,
        created_at: 0,
        changes: RecentChanges::default(),
    };
    table.change("a", |read| account::open(read, &account));
    let mut entitle = |change: Uuid, plan: Option<&str>| {
        let entitlement = plan.map(|plan| Entitlement {
            plan: plan.to_owned(),
            credits_per_month: 1,
            expires_at: None,
        });
        let account = table.change("a", |read| {
            account::entitle(read, "a", change, entitlement.as_ref())
        });
        let account = account.expect("it is kept");
        account.entitlement.map(|entitlement| entitlement.plan)
    };
    let [first, second, third] = [(); 3].map(|()| Uuid::now_v7());
    let plan = |plan: &str| Some(plan.to_owned());
    assert_eq!(entitle(first, Some("small")), plan("small"));
    assert_eq!(entitle(second, Some("large")), plan("large"));
    assert_eq!(entitle(first, Some("small")), plan("large"));
    assert_eq!(entitle(third, None), None);
    assert_eq!(entitle(second, Some("large")), None);
    // Changes that came long ago are not kept in mind, and the record stays small.
    for _ in 0..500 {
        entitle(Uuid::now_v7(), None);
    }
    let account = table.view(|read| account::account(read, "a"));
    let row = account::row(&account.expect("it is kept")).expect("a row");
    assert!(row.value.len() < 1500, "{}", row.value.len());
}
