//! The command line of the suite, and what it narrows the suite to.

use super::case::Case;
use crate::cli::parse_duration;
use crate::failure::Failure;
use clap::Parser;
use glob::Pattern;
use std::path::PathBuf;
use std::time::Duration;

/// Measures this machine's limits, Rockhopper and its peers in one run, and writes a report.
#[derive(Debug, Parser)]
#[command(name = "rockhopper-perf suite", version, after_help = EXAMPLES)]
pub struct SuiteArgs {
    /// Only these cases: a group, a group and the beginning of a name up to a slash, or a pattern with * and ? (may be repeated)
    #[arg(long, value_name = "GROUP[/CASE]")]
    pub only: Vec<String>,
    /// Print the cases, and run none
    #[arg(long)]
    pub list: bool,
    /// How often each case is measured
    #[arg(long, short = 'r', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// How long each measurement takes, as far as its program lets one choose
    #[arg(long, short = 'D', value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Measure wherever the cores are, and do not look: else repetitions wait, for seconds at most, until the two cores share a cache
    #[arg(long)]
    pub anywhere: bool,
    /// Where to write suite.html and suite.json
    #[arg(long, short = 'o', value_name = "DIR", default_value = "rockhopper-suite")]
    pub output: PathBuf,
    /// Print the JSON object as well
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  rockhopper-perf suite                                    everything, in somewhat over an hour (two, where cores come and go)
  rockhopper-perf suite --only limits --only ring          without foreign programs
  rockhopper-perf suite --only 'ring/*/65536' -r 3
  rockhopper-perf suite --only peers --list";

impl SuiteArgs {
    /// The cases that were asked for, in their order.
    ///
    /// Errors: a pattern that is none, or that no case matches.
    pub fn narrowed(&self, cases: Vec<Case>) -> Result<Vec<Case>, Failure> {
        let wanted = self.only.iter().map(|text| Wanted::new(text)).collect::<Result<Vec<_>, _>>()?;
        if let Some(nothing) = wanted.iter().find(|wanted| !cases.iter().any(|case| wanted.is(&case.id()))) {
            let mut groups: Vec<&str> = cases.iter().map(|case| case.group).collect();
            groups.dedup();
            return Err(Failure::setup(format!(
                "no case is called {}; groups are {}, and --list prints all cases",
                nothing.text,
                groups.join(", ")
            )));
        }
        let asked = |case: &Case| wanted.is_empty() || wanted.iter().any(|wanted| wanted.is(&case.id()));
        Ok(cases.into_iter().filter(asked).collect())
    }
}

/// One `--only`.
struct Wanted {
    text: String,
    pattern: Pattern,
}

impl Wanted {
    fn new(text: &str) -> Result<Wanted, Failure> {
        let text = text.trim_end_matches('/');
        let pattern = Pattern::new(text)
            .map_err(|why| Failure::setup(format!("--only {text} is no pattern: {}", why.msg)))?;
        Ok(Wanted { text: text.into(), pattern })
    }

    fn is(&self, id: &str) -> bool {
        let begins = id.strip_prefix(&self.text).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        begins || self.pattern.matches(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        SuiteArgs::command().debug_assert();
    }

    #[test]
    fn names_are_prefixes_up_to_a_slash_or_patterns() {
        let is = |text: &str, id: &str| Wanted::new(text).unwrap().is(id);
        assert!(is("ring", "ring/write/64") && is("ring/", "ring/write/64"));
        assert!(is("ring/write", "ring/write/64") && !is("ring/write", "ring/write-lat/64"));
        assert!(!is("ring/write/64", "ring/write/65536") && !is("ri", "ring/write/64"));
        assert!(is("ring/*/64", "ring/write/64") && !is("ring/*/6", "ring/write/64"));
        assert!(is("*/write/6?", "memif/write/64"));
        assert!(Wanted::new("ring/[").is_err());
    }
}
