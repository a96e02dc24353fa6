//! Scope of an isolation: its level, and the tools that it covers.

use serde::Serialize;

use crate::error::Result;
use crate::state::State;
use crate::tool::plan::Plan;

/// Level of isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Variables lead the known tools into the room.
    #[default]
    Env,
    /// The home directory is in the room as well.
    Home,
}

impl Level {
    /// A level by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "env" => Some(Level::Env),
            "home" => Some(Level::Home),
            _ => None,
        }
    }
}

/// Tools to isolate, and the level.
#[derive(Clone, Debug, Default)]
pub struct IsolationScope {
    /// Level; a room that has a home keeps it unless another level is requested.
    pub level: Level,
    /// Whether the level is requested for this command.
    pub is_level_requested: bool,
    /// Only these tools; all if empty.
    pub only: Vec<String>,
    /// Not these.
    pub except: Vec<String>,
    /// Additional tools, which are isolated only on request.
    pub also: Vec<String>,
}

impl IsolationScope {
    /// The same with every tool called by its own name instead of one of its programs'. A name that no tool has is an
    /// error.
    pub fn resolved(mut self, state: &State) -> Result<Self> {
        for list in [&mut self.only, &mut self.except, &mut self.also] {
            for name in list {
                *name = state.tools().get(name)?.0.name;
            }
        }
        Ok(self)
    }

    /// Level of a session; a moved home stays moved.
    pub(crate) fn level_in(&self, plan: &Plan) -> Level {
        if plan.home.is_some() && !self.is_level_requested { Level::Home } else { self.level }
    }

    /// Whether a tool is isolated. A bound tool always is.
    pub(crate) fn wants(&self, name: &str, on_request: bool, is_bound: bool) -> bool {
        let named = |list: &[String]| list.iter().any(|listed| listed == name);
        let asked = if self.only.is_empty() { !on_request || named(&self.also) } else { named(&self.only) };
        is_bound || (asked && !named(&self.except))
    }
}
