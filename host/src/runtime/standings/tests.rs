//! Who is paused, for how long and by whose fault, and what stays in memory, told by the clock that is passed in.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn standings() -> TenantStandings {
    TenantStandings::new(Duration::from_secs(30))
}

fn key(name: usize) -> Tenant {
    Tenant::key(&name.to_string())
}

fn kill(
    standings: &mut TenantStandings,
    tenant: &Tenant,
    now: Instant,
) -> (Option<u64>, Option<u64>) {
    let Paused { tenant, plugin } = standings.ended(tenant, Ended::Killed, now, now);
    (
        tenant.map(|pause| pause.as_secs()),
        plugin.map(|pause| pause.as_secs()),
    )
}

#[test]
fn a_tenant_is_paused_alone_and_longer_each_time_until_it_behaves() {
    let (mut standings, mut now) = (standings(), Instant::now());
    for _ in 0..4 {
        assert_eq!(kill(&mut standings, &key(1), now), (None, None));
    }
    assert_eq!(kill(&mut standings, &key(1), now), (Some(10), None));
    assert_eq!(standings.judge(&key(1), now), Err(Barred::Tenant(PAUSE)));
    assert_eq!(
        (standings.judge(&key(2), now), standings.paused(now)),
        (Ok(()), 1)
    );
    // What was under way when the pause began does not count, neither while it lasts nor later.
    let before = now - MS;
    for late in [now, now + PAUSE + MS] {
        let ended = standings.ended(&key(1), Ended::Killed, before, late);
        assert_eq!(
            ended,
            Paused {
                tenant: None,
                plugin: None
            }
        );
        standings.ended(&key(1), Ended::Within, before, late);
    }
    for seconds in [10, 20, 40, 80, 160, 300] {
        now += Duration::from_secs(seconds);
        assert_eq!(standings.judge(&key(1), now - MS), Err(Barred::Tenant(MS)));
        assert_eq!(standings.judge(&key(1), now), Ok(()));
        let longer = (2 * seconds).min(300);
        assert_eq!(
            kill(&mut standings, &key(1), now),
            (Some(longer), None),
            "one kill is enough on trial"
        );
    }
    now += Duration::from_secs(300);
    standings.ended(&key(1), Ended::Within, now, now);
    for _ in 0..4 {
        assert_eq!(
            kill(&mut standings, &key(1), now),
            (None, None),
            "a call that ended well ends the trial"
        );
    }
    assert_eq!(
        kill(&mut standings, &key(1), now),
        (Some(300), None),
        "and not the memory of the pauses"
    );
    now += Duration::from_secs(300) + FORGIVEN;
    standings.ended(&key(1), Ended::Within, now, now);
    for kills in 1..=5 {
        assert_eq!(
            kill(&mut standings, &key(1), now).0,
            (kills == 5).then_some(10)
        );
    }
}

#[test]
fn kills_far_apart_pause_nobody() {
    let (mut standings, start) = (standings(), Instant::now());
    for index in 0..40 {
        assert_eq!(
            kill(&mut standings, &key(1), start + WINDOW / 4 * index),
            (None, None)
        );
    }
}

#[test]
fn a_plugin_is_paused_where_it_must_be_at_fault() {
    let (mut standings, now) = (standings(), Instant::now());
    for tenant in [1, 1, 2, 2, 2, 2] {
        assert_eq!(
            kill(&mut standings, &key(tenant), now),
            (None, None),
            "two tenants may send the same page"
        );
    }
    assert_eq!(kill(&mut standings, &key(3), now), (None, Some(10)));
    assert_eq!(standings.judge(&key(4), now), Err(Barred::Plugin(PAUSE)));
    // A call that began before, and ends later, is no reason for another pause; nor is one tenant's alone.
    let later = now + PAUSE;
    for tenant in 1..=9 {
        assert_eq!(
            standings
                .ended(&key(tenant), Ended::Killed, now, later)
                .plugin,
            None
        );
    }
    assert_eq!(
        (
            standings.judge(&key(4), later),
            kill(&mut standings, &key(4), later)
        ),
        (Ok(()), (None, None))
    );
}

#[test]
fn tenants_that_are_served_keep_a_plugin_from_being_paused() {
    let (mut standings, now) = (standings(), Instant::now());
    for served in 10..13 {
        standings.ended(&key(served), Ended::Within, now, now);
    }
    for tenant in [1, 1, 2, 2, 3, 3] {
        assert_eq!(
            kill(&mut standings, &key(tenant), now).1,
            None,
            "three were hit and three were served"
        );
    }
    assert_eq!(kill(&mut standings, &key(4), now).1, Some(10));
}

#[test]
fn any_number_of_addresses_counts_as_one_tenant() {
    let (mut standings, now) = (standings(), Instant::now());
    let address = |name: usize| Tenant::address(&format!("192.0.2.{name}"));
    for name in 0..50 {
        assert_eq!(kill(&mut standings, &address(name), now), (None, None));
    }
    assert_eq!(kill(&mut standings, &key(1), now), (None, None));
    assert_eq!(kill(&mut standings, &key(2), now), (None, Some(10)));
}

#[test]
fn processor_time_comes_back_by_the_minute_and_a_debt_is_paid_first() {
    let (mut standings, now) = (standings(), Instant::now());
    let used = |standings: &mut TenantStandings, s: u64| {
        standings.charge(&key(1), Duration::from_secs(s), now);
    };
    used(&mut standings, 29);
    assert_eq!(standings.judge(&key(1), now), Ok(()));
    used(&mut standings, 1);
    assert_eq!(
        standings.judge(&key(1), now),
        Err(Barred::OverBudget(Duration::ZERO)),
        "it comes back from now on"
    );
    assert_eq!(standings.judge(&key(1), now + MS), Ok(()));
    used(&mut standings, 5);
    assert_eq!(
        standings.judge(&key(1), now),
        Err(Barred::OverBudget(Duration::from_secs(10)))
    );
    assert_eq!(
        standings.judge(&key(1), now + Duration::from_secs(10) + MS),
        Ok(())
    );
    assert_eq!(standings.judge(&key(2), now), Ok(()));
    // Half of it came back within half a minute.
    let later = now + Duration::from_secs(10) + MINUTE / 2;
    standings.charge(&key(1), Duration::from_secs(14), later);
    assert_eq!(standings.judge(&key(1), later), Ok(()));
    standings.charge(&key(1), Duration::from_secs(1), later);
    assert!(standings.judge(&key(1), later).is_err());
}

#[test]
fn the_tables_are_bounded_and_addresses_push_nobody_else_out() {
    const MOST: usize = TENANTS_MAX.get();
    let (mut standings, now) = (standings(), Instant::now());
    standings.charge(&key(0), Duration::from_secs(31), now);
    for name in 0..3 * MOST {
        standings.charge(
            &Tenant::address(&name.to_string()),
            Duration::from_secs(31),
            now,
        );
    }
    assert_eq!(
        (standings.addresses.len(), standings.known.len()),
        (MOST, 1)
    );
    assert!(standings.judge(&key(0), now).is_err());
    for name in 1..=MOST {
        standings.charge(&key(name), MS, now);
    }
    assert_eq!(standings.known.len(), MOST);
    standings.sweep(now);
    assert_eq!(
        (standings.addresses.len(), standings.known.len()),
        (MOST, MOST),
        "they owe something"
    );
    standings.sweep(now + 2 * MINUTE);
    assert_eq!((standings.addresses.len(), standings.known.len()), (0, 0));
}
