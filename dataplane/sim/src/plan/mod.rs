//! A plan: everything that happens in a world, as data. A seed gives one ([`Plan::random`]), a file holds one, and shrinking
//! cuts one down.
//!
//! Nothing in a plan depends on what else is in it: a request's bytes follow from the seed and its number, so that leaving
//! others out changes nothing about it but the moment at which it leaves.

mod episodes;
mod links;
mod parts;
mod random;

pub use parts::{Connection, Event, Fault, Happening, Kind, Local, Op, Place, Service, Side, Srq};
pub use random::Choices;

use serde::{Deserialize, Serialize};

/// A world and what is done in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where contents, first PSNs and the links' luck come from.
    pub seed: u64,
    /// What links do to frames, in the grammar of `--impair`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub impair: String,
    /// One frame in so many gets another payload byte and a right iCRC for it: a fault that the transport cannot see, to
    /// find out whether the oracles do. 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forge: u32,
    /// The way from one end to the other.
    pub delay_ns: u64,
    /// Speed of each transmitter.
    pub gbps: u32,
    /// Endpoints.
    pub endpoints: u8,
    /// Receives that QPs share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srq: Option<Srq>,
    /// Connections, named by their place in this list.
    #[serde(default, rename = "connection", skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Work requests; those of one QP are posted in this order.
    #[serde(default, rename = "op", skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
    /// What else happens.
    #[serde(default, rename = "event", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a plan cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The text is no plan.
    #[error("{0}")]
    Syntax(String),
    /// It says something that cannot be.
    #[error("{0}")]
    Nonsense(String),
}

impl Plan {
    /// Reads a plan file.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|why| PlanError::Syntax(why.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// The text of a plan file.
    pub fn to_text(&self) -> String {
        // Tables of numbers, words and flags: there is nothing in a plan that TOML does not have.
        toml::to_string(self).unwrap_or_else(|why| format!("# this plan cannot be written: {why}\n"))
    }

    /// Whether everything that it names is there.
    pub fn check(&self) -> Result<(), PlanError> {
        let nonsense = |what: String| Err(PlanError::Nonsense(what));
        if !(1..=MAX_ENDPOINTS).contains(&self.endpoints) {
            return nonsense(format!("endpoints = {}: a world has 1 to {MAX_ENDPOINTS}", self.endpoints));
        }
        if self.gbps == 0 {
            return nonsense("gbps = 0: links need a speed".into());
        }
        if self.connections.len() > MAX_CONNECTIONS {
            return nonsense(format!("{} connections: at most {MAX_CONNECTIONS}", self.connections.len()));
        }
        if let Some(srq) = &self.srq {
            srq.check().map_err(|why| PlanError::Nonsense(format!("srq: {why}")))?;
        }
        for (number, connection) in self.connections.iter().enumerate() {
            if self.srq.is_none() && Side::BOTH.into_iter().any(|side| connection.meets_shared(side)) {
                return nonsense(format!("connection {number}: it uses SRQs, and the plan has no [srq]"));
            }
            connection
                .check(self.endpoints)
                .map_err(|why| PlanError::Nonsense(format!("connection {number}: {why}")))?;
        }
        let there = |number: u32| (number as usize) < self.connections.len();
        for (at, op) in self.ops.iter().enumerate() {
            let Some(connection) = self.connections.get(op.connection as usize) else {
                return nonsense(format!("op {}: there is no connection {}", op.id, op.connection));
            };
            op.check(connection).map_err(|why| PlanError::Nonsense(format!("op {}: {why}", op.id)))?;
            let known = |id: u32| self.ops.iter().any(|other| other.id == id);
            if let Some(id) = op.needs().find(|&id| !known(id)) {
                return nonsense(format!("op {}: there is no op {id}", op.id));
            }
            if self.ops[..at].iter().any(|other| other.id == op.id) {
                return nonsense(format!("op {}: two ops have this id", op.id));
            }
        }
        match self.events.iter().find(|event| !there(event.connection)) {
            Some(event) => {
                nonsense(format!("an event names connection {}, which is not there", event.connection))
            }
            None => Ok(()),
        }
    }
}

/// Endpoints have one byte of address.
const MAX_ENDPOINTS: u8 = 16;
/// So many have QPNs that differ for certain.
const MAX_CONNECTIONS: usize = 8;
