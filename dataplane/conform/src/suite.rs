//! The rules that come with the program.

use crate::script::{Rule, ScriptError, parse};

/// Scripts by name, in the order of reports.
macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        /// The scripts of the suite: file name and text.
        pub const SCRIPTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../conformance/", $name)))),*];
    };
}

scripts! {
    "header.rule",
    "send.rule",
    "write.rule",
    "read.rule",
    "atomic.rule",
    "length.rule",
    "invalidate.rule",
    "window.rule",
    "srq.rule",
    "xrc.rule",
    "psn.rule",
    "rnr.rule",
    "duplicate.rule",
    "requester.rule",
    "retry.rule",
    "uc.rule",
    "ud.rule",
}

/// Every rule of the suite.
///
/// Errors: never, as long as the suite's own tests pass.
pub fn rules() -> Result<Vec<Rule>, ScriptError> {
    let mut rules: Vec<Rule> = Vec::new();
    for (name, text) in SCRIPTS {
        for rule in parse(name, text)? {
            if let Some(other) = rules.iter().find(|other| other.id == rule.id) {
                let what = format!("the rule {} is in {}, too", rule.id, other.place.0);
                return Err(ScriptError { file: (*name).to_owned(), line: rule.place.1, what });
            }
            rules.push(rule);
        }
    }
    Ok(rules)
}
