//! Why the program does not end with status 0.

use rockhopper::perf::RunError;
use rockhopper::programs::ProgramError;
use rockhopper::{ConfigError, CreateError, NoLink, PostError, QpError, StartError};

/// Why the program does not end with status 0.
#[derive(Debug)]
pub enum Failure {
    /// It could not begin: a sentence that says what to do.
    Setup(String),
    /// Something went wrong, or was wrong, on the way.
    Run(String),
    /// It was told already, in the output.
    Told,
    /// Setup is wrong, and it was told already.
    SetupTold,
    /// A signal ended it.
    Interrupted,
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Setup(_) | Failure::SetupTold => 2,
            Failure::Run(_) | Failure::Told => 1,
            Failure::Interrupted => 130,
        }
    }

    /// What to tell people.
    pub fn text(&self) -> Option<&str> {
        match self {
            Failure::Setup(text) | Failure::Run(text) => Some(text),
            Failure::Told | Failure::SetupTold => None,
            Failure::Interrupted => Some("interrupted"),
        }
    }

    /// A failure to begin.
    pub fn setup(why: impl ToString) -> Failure {
        Failure::Setup(why.to_string())
    }
}

macro_rules! failures {
    ($($kind:ident: $($error:ty),+;)+) => {
        $($(impl From<$error> for Failure {
            fn from(why: $error) -> Failure {
                Failure::$kind(why.to_string())
            }
        })+)+
    };
}

failures! {
    Setup: StartError, ConfigError, CreateError;
    Run: QpError, PostError, rockhopper::OutOfRange;
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

impl From<ProgramError> for Failure {
    fn from(why: ProgramError) -> Failure {
        match why {
            ProgramError::Stopped => Failure::Interrupted,
            why if why.is_setup() => Failure::setup(why),
            why => Failure::Run(why.to_string()),
        }
    }
}
