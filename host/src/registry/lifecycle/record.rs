//! What a plugin's record is made of: revisions with their states, who did what to them, and the steps that are refused.
//!
//! Values alone; the steps between them are the parent's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::description::Want;
use crate::contract::grants::{Atom, Grants};
use crate::contract::manifest::Settings;

/// Who did something, when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OperatorNote {
    /// Seconds since 1970.
    pub(crate) at: u64,
    /// `manifest`, `dev`, `host`, or the name that an operator gave.
    pub(crate) by: String,
    pub(crate) why: String,
}

impl OperatorNote {
    /// The same with another reason.
    pub(super) fn because(&self, why: String) -> Self {
        let (at, by) = (self.at, self.by.clone());
        Self { at, by, why }
    }
}

/// Where a revision stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RevisionState {
    Fetched,
    Verified,
    Compiled,
    Linked,
    Described,
    Compared,
    Staged,
    AwaitingApproval,
    Active,
    Draining,
    Retained,
    Rejected,
}

impl RevisionState {
    /// What the host does with a fetched component, of which an operator rarely wants to know.
    pub(crate) const STEPS: [RevisionState; 5] = [
        RevisionState::Verified,
        RevisionState::Compiled,
        RevisionState::Linked,
        RevisionState::Described,
        RevisionState::Compared,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            RevisionState::Fetched => "fetched",
            RevisionState::Verified => "verified",
            RevisionState::Compiled => "compiled",
            RevisionState::Linked => "linked",
            RevisionState::Described => "described",
            RevisionState::Compared => "compared",
            RevisionState::Staged => "staged",
            RevisionState::AwaitingApproval => "awaiting-approval",
            RevisionState::Active => "active",
            RevisionState::Draining => "draining",
            RevisionState::Retained => "retained",
            RevisionState::Rejected => "rejected",
        }
    }

    /// Whether the host still works on it.
    pub(crate) fn is_under_way(self) -> bool {
        self.next().is_some()
    }

    /// Whether it waits for the operator.
    pub(crate) fn is_candidate(self) -> bool {
        matches!(
            self,
            RevisionState::Staged | RevisionState::AwaitingApproval
        )
    }

    /// Whether it served once and may serve again.
    pub(crate) fn is_ready(self) -> bool {
        matches!(self, RevisionState::Draining | RevisionState::Retained)
    }

    /// The step that follows on a revision's way in. What follows `compared` depends on its wants.
    pub(super) fn next(self) -> Option<RevisionState> {
        match self {
            RevisionState::Fetched => Some(RevisionState::Verified),
            RevisionState::Verified => Some(RevisionState::Compiled),
            RevisionState::Compiled => Some(RevisionState::Linked),
            RevisionState::Linked => Some(RevisionState::Described),
            RevisionState::Described => Some(RevisionState::Compared),
            RevisionState::Compared => Some(RevisionState::Staged),
            RevisionState::Staged
            | RevisionState::AwaitingApproval
            | RevisionState::Active
            | RevisionState::Draining
            | RevisionState::Retained
            | RevisionState::Rejected => None,
        }
    }
}

/// A step that cannot be taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LifeError {
    #[error("plugin `{plugin}` has no revision {number}")]
    Unknown { plugin: String, number: u64 },
    #[error("plugin `{plugin}`: revision {number} is being prepared ({state}); wait for it, or reject it", state = .state.name())]
    UnderWay {
        plugin: String,
        number: u64,
        state: RevisionState,
    },
    #[error("plugin `{plugin}`: revision {number} is {state}; {rule}", state = .state.name())]
    State {
        plugin: String,
        number: u64,
        state: RevisionState,
        rule: &'static str,
    },
    #[error(
        "plugin `{plugin}`: revision {number} wants {atoms}, which neither its entry in plugin-manifest.toml nor an \
         approval grants: approve it (`switchbay plugin approve {plugin} {number}`), or add it to the entry's `grants`",
        atoms = quoted(.missing)
    )]
    NotGranted {
        plugin: String,
        number: u64,
        missing: Grants,
    },
    #[error(
        "plugin `{plugin}`: approving revision {number} would grant {atoms}, which the approval does not list; \
         review the difference again",
        atoms = quoted(.missing)
    )]
    Changed {
        plugin: String,
        number: u64,
        missing: Grants,
    },
    #[error(
        "plugin `{plugin}`: there is no approval of `{atom}` to take back; what plugin-manifest.toml grants is removed there"
    )]
    NotApproved { plugin: String, atom: Atom },
    #[error(
        "plugin `{plugin}` has no revision to roll back to: none that served before revision {active} is kept"
    )]
    NothingBefore { plugin: String, active: u64 },
    #[error("plugin `{plugin}` has no active revision")]
    NoActive { plugin: String },
    #[error("plugin `{plugin}` is already {state}", state = if *.disabled { "disabled" } else { "enabled" })]
    Already { plugin: String, disabled: bool },
}

fn quoted(atoms: &Grants) -> String {
    let quoted: Vec<String> = atoms.iter().map(|atom| format!("`{atom}`")).collect();
    quoted.join(", ")
}

/// One revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RevisionRecord {
    /// Counts from 1 within the plugin and is never used again.
    pub(crate) number: u64,
    pub(crate) state: RevisionState,
    /// SHA-256 of the component, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) bytes: u64,
    /// Where it came from, for people.
    pub(crate) source: String,
    /// How it is run, as the manifest had it when it was staged.
    pub(crate) settings: Settings,
    /// Whether it is to go live as soon as it may.
    pub(crate) goes_live: bool,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) wants: Vec<Want>,
    /// How it came in.
    pub(crate) staged: OperatorNote,
    /// Its last step.
    pub(crate) changed: OperatorNote,
    /// Counts activations of the plugin; the higher, the later it served.
    pub(crate) turn: u64,
    /// Whether it has answered a call well: what `--safe-mode` starts from.
    pub(crate) proven: bool,
}

impl RevisionRecord {
    pub(crate) fn wanted(&self) -> Grants {
        self.wants.iter().map(|want| want.atom.clone()).collect()
    }

    /// What it cannot do without.
    pub(crate) fn needed(&self) -> Grants {
        self.wants
            .iter()
            .filter(|want| !want.optional)
            .map(|want| want.atom.clone())
            .collect()
    }
}

/// A component as it was fetched.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) digest: String,
    pub(crate) bytes: u64,
    pub(crate) source: String,
    pub(crate) settings: Settings,
    pub(crate) goes_live: bool,
}

/// What a component said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) wants: Vec<Want>,
}

/// What the manifest's entry last brought in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenEntry {
    pub(crate) digest: String,
    pub(crate) settings: Settings,
}

/// Something that happened, for the history and the stream of events.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LifecycleEvent {
    pub(crate) plugin: String,
    pub(crate) revision: Option<u64>,
    /// A state's name, or `approved`, `revoked`, `disabled`, `enabled`, `granted`, `called`, `call-ended`.
    pub(crate) event: &'static str,
    /// What was approved, revoked or is granted by the manifest.
    #[serde(skip_serializing_if = "Grants::is_empty")]
    pub(crate) atoms: Grants,
    /// The operation that the operator called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<String>,
    /// How its call ended: `ok`, or an error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(flatten)]
    pub(crate) mark: OperatorNote,
}
