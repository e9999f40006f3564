//! Starting the program.

use serde_json::Value;
use std::process::{Command, Output};

/// The program with arguments as on a command line.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rockhopper-perf"));
    command.args(line.split_whitespace());
    command
}

/// Runs it to its end.
pub fn run(line: &str) -> Output {
    command(line).output().unwrap()
}

/// Runs it with `--json`; it has to succeed and to print one object.
pub fn measure(line: &str) -> Value {
    let output = run(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {}\n{}{}", output.status, stdout(&output), stderr(&output));
    object(line, &output)
}

/// The one JSON object that was printed.
pub fn object(line: &str, output: &Output) -> Value {
    let text = stdout(output);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{line}: {why}: {text}{}", stderr(output)))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
