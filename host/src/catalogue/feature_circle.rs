//! Plugins that are granted each other's operations in a circle. A call along it would wait for itself: for a place of a plugin
//! whose places are all held by calls that wait for it.
//!
//! Knows the grants alone: whether a call is ever made does not matter. A plugin that cannot be loaded calls nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::revision::{CallRunner, Revision};
use crate::runtime::instance::Off;

/// Who is granted operations of whom.
type GrantedPlugins<'r> = BTreeMap<&'r str, BTreeSet<&'r str>>;

/// A circle, where there is one: its plugins in the order of their calls, the first again at the end.
pub(super) fn find(revisions: &[Arc<Revision>]) -> Option<Vec<String>> {
    let granted: GrantedPlugins<'_> = revisions
        .iter()
        .filter(|revision| !matches!(revision.runner, CallRunner::Off(Off::Unloadable(_))))
        .map(|revision| (&*revision.plugin, called(revision)))
        .collect();
    let mut done = BTreeSet::new();
    granted
        .keys()
        .find_map(|plugin| walk(plugin, &granted, &mut Vec::new(), &mut done))
}

fn called(revision: &Revision) -> BTreeSet<&str> {
    let operations = revision.rights.called_operations();
    operations
        .filter_map(|name| Some(name.split_once('.')?.0))
        .collect()
}

/// Follows the grants from a plugin. `path` leads to it, and `done` are those from which no circle is reached.
fn walk<'r>(
    plugin: &'r str,
    granted: &GrantedPlugins<'r>,
    path: &mut Vec<&'r str>,
    done: &mut BTreeSet<&'r str>,
) -> Option<Vec<String>> {
    if let Some(first) = path.iter().position(|known| *known == plugin) {
        let circle = path[first..].iter().chain([&plugin]);
        return Some(circle.map(|name| (*name).to_owned()).collect());
    }
    if done.contains(plugin) {
        return None;
    }
    path.push(plugin);
    let mut next = granted.get(plugin).into_iter().flatten();
    let found = next.find_map(|called| walk(called, granted, path, done));
    path.pop();
    done.insert(plugin);
    found
}
