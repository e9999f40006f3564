//! Why the program does not end with status 0.

use rockhopper::perf::{Outcome, RunError};
use rockhopper::{ConfigError, NoLink, StartError};

/// Why the program does not end with status 0.
#[derive(Debug)]
pub enum Failure {
    /// It could not begin: a sentence that says what to do.
    Setup(String),
    /// It did not come to its end.
    Run(String),
    /// Something was wrong with the data.
    Wrong(String),
    /// A signal ended it.
    Interrupted,
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Setup(_) => 2,
            Failure::Run(_) | Failure::Wrong(_) => 1,
            Failure::Interrupted => 130,
        }
    }

    /// What to tell people.
    pub fn text(&self) -> Option<&str> {
        match self {
            Failure::Setup(text) | Failure::Run(text) | Failure::Wrong(text) => Some(text),
            Failure::Interrupted => None,
        }
    }

    /// A failure to begin.
    pub fn setup(why: impl ToString) -> Failure {
        Failure::Setup(why.to_string())
    }

    /// What results that have been printed mean for the exit status.
    pub fn of_outcomes(outcomes: &[Outcome]) -> Result<(), Failure> {
        if let Some(wrong) = outcomes.iter().find(|outcome| outcome.faults() > 0) {
            let first = wrong.first_fault().unwrap_or("no details");
            return Err(Failure::Wrong(format!("{} checks failed; the first: {first}", wrong.faults())));
        }
        if outcomes.iter().any(|outcome| outcome.interrupted) { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

impl From<StartError> for Failure {
    fn from(why: StartError) -> Failure {
        Failure::setup(why)
    }
}

impl From<ConfigError> for Failure {
    fn from(why: ConfigError) -> Failure {
        Failure::setup(why)
    }
}

impl From<NoLink> for Failure {
    fn from(why: NoLink) -> Failure {
        match why {
            NoLink::Stopped => Failure::Interrupted,
            NoLink::Down(_) => Failure::setup(why),
        }
    }
}

impl From<RunError> for Failure {
    fn from(why: RunError) -> Failure {
        match why {
            RunError::Stopped => Failure::Interrupted,
            why if why.is_setup() => Failure::setup(why),
            why => Failure::Run(why.to_string()),
        }
    }
}
