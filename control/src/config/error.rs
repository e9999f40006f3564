//! What is wrong with a configuration file: where, and how to mend it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A refused configuration. `Display` is one sentence with file, line, key and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1; `None` when the file as a whole is meant.
    pub line: Option<usize>,
    /// The key, like `port[0].mtu`; empty when no key is meant.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl ConfigError {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "check the path, or start from a file in configs/",
            io::ErrorKind::PermissionDenied => "make the file readable for this user",
            _ => "check the file",
        };
        ConfigError {
            file: path.to_owned(),
            line: None,
            key: String::new(),
            problem: format!("cannot be read: {error}"),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}
