//! How a device is programmed beyond single instructions: its loop construct, what opens a program, what orders its
//! stores. Data only.

use crate::encoding::Encoding;
use crate::program::LoopId;

/// The device side of a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Emitted once, before the first instruction.
    pub prologue: Vec<Encoding>,
    /// Emitted once, behind the last instruction.
    pub epilogue: Vec<Encoding>,
    /// How [`crate::Program::Fence`] is emitted; empty where stores and loads of main memory stay in order.
    pub fence: Vec<Encoding>,
    /// The device's own loops; without them the host runs the loops around the instructions.
    pub loops: Option<LoopConstruct>,
}

/// A loop that the device runs (ACT paper, section 8: what `scf.for` is mapped to).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopConstruct {
    pub name: String,
    /// Most rounds of one loop.
    pub max_trip: Option<u64>,
    /// Most loops within each other.
    pub max_depth: Option<u64>,
    /// Cycles to set a loop up, and per round.
    pub cost_begin: u64,
    pub cost_iteration: u64,
    /// Text before and after the body; `{iv}` is the loop variable, `{trip}` the number of rounds. An empty text is no
    /// line.
    pub begin: String,
    pub end: String,
    /// Put before every line of the body.
    pub indent: String,
    /// The loop variable's name; `{n}` is the number of the loop in the program.
    pub variable: String,
}

impl LoopConstruct {
    /// What the loop's variable is called.
    pub fn variable_of(&self, iv: LoopId) -> String {
        self.variable.replace("{n}", &iv.0.to_string())
    }

    /// A text of the construct with the variable's name and the number of rounds in place.
    pub fn filled(text: &str, variable: &str, trip: u64) -> String {
        text.replace("{iv}", variable).replace("{trip}", &trip.to_string())
    }
}
