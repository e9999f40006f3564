//! Why a plan cannot be read.

use std::fmt;
use std::ops::Range;

/// Points at a word of a plan, and says what would be right there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    at: Range<usize>,
    word: String,
    problem: &'static str,
    remedy: String,
}

impl PlanError {
    pub(crate) fn new(
        text: &str,
        at: Range<usize>,
        problem: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        let word = text.get(at.clone()).unwrap_or_default().to_owned();
        PlanError { at, word, problem, remedy: remedy.into() }
    }

    /// Where the word is, in bytes of the text.
    pub fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The word.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// What is wrong, and where.
    pub fn problem(&self) -> String {
        let PlanError { at, word, problem, .. } = self;
        match word.as_str() {
            "" => format!("the impairment plan {problem}"),
            word => format!("`{word}` at character {} of the impairment plan {problem}", at.start + 1),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem(), self.remedy)
    }
}

impl std::error::Error for PlanError {}
