//! Lines into words, and words with values (`msn=1`) looked up by name.

/// What is wrong with a line; the place is added by whoever knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint(pub String);

/// The words of a line: the first says what it is, `name=value` words carry values, the rest stands by its position.
pub(crate) struct Words<'a> {
    plain: std::collections::VecDeque<&'a str>,
    named: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        let (mut plain, mut named) = (std::collections::VecDeque::new(), Vec::new());
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) if !name.is_empty() => named.push((name, value)),
                _ => plain.push_back(word),
            }
        }
        Words { plain, named, known: Vec::new() }
    }

    /// The names of all values that were not taken yet.
    pub fn names(&self) -> Vec<String> {
        self.named.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// The next word without a value.
    pub fn next(&mut self, what: &str) -> Result<&'a str, Complaint> {
        self.plain.pop_front().ok_or_else(|| Complaint(format!("{what} is missing")))
    }

    /// The next word without a value, if it is there and fits.
    pub fn next_if(&mut self, fits: impl Fn(&str) -> bool) -> Option<&'a str> {
        self.plain.front().filter(|word| fits(word))?;
        self.plain.pop_front()
    }

    /// The value of a name, at most once.
    pub fn take(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        let at = self.named.iter().position(|(key, _)| *key == name)?;
        Some(self.named.remove(at).1)
    }

    /// The values of a name that may stand more than once.
    pub fn take_all(&mut self, name: &'static str) -> Vec<&'a str> {
        std::iter::from_fn(|| self.take(name)).collect()
    }

    /// A value by name, read by `read`.
    pub fn take_as<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Complaint>,
    ) -> Result<Option<T>, Complaint> {
        let about = |Complaint(what)| Complaint(format!("{name}: {what}"));
        self.take(name).map(read).transpose().map_err(about)
    }

    /// True if a word without value is there.
    pub fn flag(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        match self.plain.iter().position(|word| *word == name) {
            Some(at) => self.plain.remove(at).is_some(),
            None => false,
        }
    }

    /// Refuses what nobody asked for.
    pub fn end(mut self) -> Result<(), Complaint> {
        // A flag may also be given with a value: then it was asked for twice.
        self.known.dedup();
        let left = self.named.first().map(|(name, _)| *name).or_else(|| self.plain.front().copied());
        match left {
            None => Ok(()),
            Some(word) => Err(unknown("word", word, &self.known)),
        }
    }
}

/// A complaint about a word, with the nearest that would be right, or all of them.
pub(crate) fn unknown(kind: &str, word: &str, right: &[&str]) -> Complaint {
    let near = right.iter().map(|&name| (strsim::damerau_levenshtein(word, name), name)).min();
    Complaint(match near {
        Some((distance, name)) if distance <= 2.max(word.len() / 3) => {
            format!("there is no {kind} {word:?} here: do you mean {name}?")
        }
        _ => format!("there is no {kind} {word:?} here; there are: {}", right.join(", ")),
    })
}

/// One of some words.
pub(crate) fn one_of(kind: &str, word: &str, right: &[&'static str]) -> Result<&'static str, Complaint> {
    right.iter().find(|&&name| name == word).copied().ok_or_else(|| unknown(kind, word, right))
}

/// A name of a script: of a region, a queue pair.
pub(crate) fn check_name(name: &str) -> Result<(), Complaint> {
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if fits {
        Ok(())
    } else {
        Err(Complaint(format!("{name:?} is no name: letters, digits and _, a letter first")))
    }
}
