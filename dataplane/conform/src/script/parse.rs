//! Text into rules: the lines that make a rule up. What a single step says is read in `steps.rs`.

use super::names::Names;
use super::steps;
use super::words::{Complaint, Words, one_of, unknown};
use super::{Branch, Rule, ScriptError, Step, StepKind};

/// Reads a script. `file` is its name in errors.
///
/// Errors: the first line that is wrong, with what would be right.
pub fn parse(file: &str, text: &str) -> Result<Vec<Rule>, ScriptError> {
    let mut reader = Reader::new(file);
    for (index, line) in text.lines().enumerate() {
        let number = index as u32 + 1;
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if !line.is_empty() {
            reader.line(number, line).map_err(|Complaint(what)| reader.error(number, what))?;
        }
    }
    reader.finish().map_err(|Complaint(what)| reader.error(text.lines().count() as u32, what))?;
    Ok(reader.rules)
}

/// First words of a rule's lines.
const LINES: &[&str] = &[
    "rule",
    "title",
    "fact",
    "open",
    "needs",
    "qp",
    "region",
    "srq",
    "window",
    "arm",
    "limit",
    "send",
    "expect",
    "silence",
    "wait",
    "receive",
    "post",
    "complete",
    "memory",
    "fill",
    "deregister",
    "state",
    "modify",
    "either",
    "or",
    "end",
];

struct Reader<'a> {
    file: &'a str,
    rules: Vec<Rule>,
    names: Names,
    /// Branches that are open, innermost last.
    branches: Vec<(u32, Vec<Branch>)>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a str) -> Self {
        Reader { file, rules: Vec::new(), names: Names::default(), branches: Vec::new() }
    }

    fn error(&self, line: u32, what: String) -> ScriptError {
        ScriptError { file: self.file.to_owned(), line, what }
    }

    fn line(&mut self, number: u32, line: &str) -> Result<(), Complaint> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if first == "rule" {
            return self.begin(number, rest);
        }
        if self.rules.is_empty() {
            return Err(Complaint(format!(
                "{first:?} stands before any rule: begin with a line like: rule my-rule"
            )));
        }
        match first {
            "title" => self.text(rest, |rule| &mut rule.title),
            "fact" => self.text(rest, |rule| &mut rule.fact),
            "open" => self.text(rest, |rule| rule.open.get_or_insert_default()),
            "needs" => self.needs(rest),
            "either" => self.either(number, rest),
            "or" => self.or(rest),
            "end" => self.end(),
            _ if LINES.contains(&first) => self.step(number, first, rest),
            _ => Err(unknown("line", first, LINES)),
        }
    }

    fn rule(&mut self) -> &mut Rule {
        self.rules.last_mut().expect("a step is read only behind a rule line")
    }

    fn begin(&mut self, number: u32, id: &str) -> Result<(), Complaint> {
        self.finish()?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if id.is_empty() || !id.chars().all(fits) {
            return Err(Complaint(format!(
                "{id:?} is no name of a rule: small letters, digits and dashes, like psn-ahead-is-naked-once"
            )));
        }
        if self.rules.iter().any(|rule| rule.id == id) {
            return Err(Complaint(format!("there are two rules {id}: give this one another name")));
        }
        self.names = Names::default();
        self.rules.push(Rule {
            id: id.to_owned(),
            title: String::new(),
            fact: String::new(),
            open: None,
            place: (self.file.to_owned(), number),
            needs: Vec::new(),
            steps: Vec::new(),
        });
        Ok(())
    }

    /// Looks at the rule that ends here.
    fn finish(&mut self) -> Result<(), Complaint> {
        if let Some((line, _)) = self.branches.last() {
            return Err(Complaint(format!("the either of line {line} has no end")));
        }
        let Some(rule) = self.rules.last() else { return Ok(()) };
        let missing = |what: &str, example: &str| {
            Complaint(format!("the rule {} before this has no {what}: add a line like: {example}", rule.id))
        };
        if rule.title.is_empty() {
            return Err(missing("title", "title A SEND that fits is acknowledged"));
        }
        if rule.fact.is_empty() {
            return Err(missing("fact", "fact transport 6"));
        }
        if rule.steps.is_empty() {
            return Err(missing("step", "qp rc"));
        }
        Ok(())
    }

    fn text(&mut self, text: &str, of: impl FnOnce(&mut Rule) -> &mut String) -> Result<(), Complaint> {
        if text.is_empty() {
            return Err(Complaint("a text is missing behind this word".into()));
        }
        *of(self.rule()) = text.to_owned();
        Ok(())
    }

    fn needs(&mut self, text: &str) -> Result<(), Complaint> {
        for word in text.split_whitespace() {
            let need = one_of("ability of a device", word, super::steps::ABILITIES)?;
            self.need(need);
        }
        Ok(())
    }

    fn need(&mut self, need: &str) {
        let needs = &mut self.rule().needs;
        if !needs.iter().any(|known| known == need) {
            needs.push(need.to_owned());
        }
    }

    fn step(&mut self, line: u32, first: &str, rest: &str) -> Result<(), Complaint> {
        let mut words = Words::new(rest);
        let kind = steps::read(first, &mut words, &mut self.names)?;
        words.end()?;
        for need in steps::needs(&kind) {
            self.need(need);
        }
        self.push(Step { line, kind });
        Ok(())
    }

    fn push(&mut self, step: Step) {
        match self.branches.last_mut().and_then(|(_, branches)| branches.last_mut()) {
            Some(branch) => branch.steps.push(step),
            None => self.rule().steps.push(step),
        }
    }

    fn either(&mut self, line: u32, name: &str) -> Result<(), Complaint> {
        self.branches.push((line, vec![Branch { name: branch_name(name)?, steps: Vec::new() }]));
        Ok(())
    }

    fn or(&mut self, name: &str) -> Result<(), Complaint> {
        let name = branch_name(name)?;
        let Some((_, branches)) = self.branches.last_mut() else {
            return Err(Complaint(
                "an or without either: begin the choice with a line like: either acknowledged".into(),
            ));
        };
        branches.push(Branch { name, steps: Vec::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Complaint> {
        let Some((line, branches)) = self.branches.pop() else {
            return Err(Complaint("an end without either".into()));
        };
        let begins = |branch: &Branch| {
            matches!(
                branch.steps.first(),
                Some(Step { kind: StepKind::Expect(_) | StepKind::Silence(_), .. })
            )
        };
        if let Some(branch) = branches.iter().find(|branch| !begins(branch)) {
            return Err(Complaint(format!(
                "the branch {:?} has to begin with expect or silence, by which it is told from the others",
                branch.name
            )));
        }
        self.push(Step { line, kind: StepKind::Either(branches) });
        Ok(())
    }
}

fn branch_name(name: &str) -> Result<String, Complaint> {
    if name.is_empty() {
        return Err(Complaint("say behind this word what the device does in this branch".into()));
    }
    Ok(name.to_owned())
}
