//! Lists, pipelines and compound commands.

use std::cell::OnceCell;
use std::rc::Rc;

use super::word::{is_name, starts_compound};
use super::{Parsed, Parser, Pending};
use crate::shell::syntax::{
    After, AssignedValue, Assignment, Command, Item, Kind, List, Operator, Part, Redirect, Word,
};

/// Words that are not programs at the beginning of a command.
const KEYWORDS: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "{", "}",
];
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser<'_> {
    /// Parses commands up to one of these words, to `)`, `;;` or the end.
    pub(super) fn list(&mut self, until: &[&str]) -> Parsed<List> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            self.lines()?;
            if self.ends(until)? {
                return Ok(List(items));
            }
            let first = items.len();
            let mut after = After::Always;
            loop {
                let command = self.pipeline()?;
                items.push(Item { command, after, background: false });
                self.blanks();
                if !(self.eat("&&") || self.eat("||")) {
                    break;
                }
                after = After::Perhaps;
                self.lines()?;
            }
            if self.looking_at(";;") || self.looking_at(";&") {
                return Ok(List(items));
            }
            match self.peek() {
                Some(';') => self.at += 1,
                Some('&') => {
                    self.at += 1;
                    items[first..].iter_mut().for_each(|item| item.background = true);
                }
                Some('\n') => self.line_end()?,
                Some(')') | None => return Ok(List(items)),
                _ => return self.error("this cannot follow a command"),
            }
        }
    }

    /// The same, but requires a command.
    fn some_list(&mut self, until: &[&str]) -> Parsed<List> {
        let list = self.list(until)?;
        match list.0.is_empty() {
            true => self.error("a command is missing"),
            false => Ok(list),
        }
    }

    fn ends(&mut self, until: &[&str]) -> Parsed<bool> {
        if matches!(self.peek(), None | Some(')')) || self.looking_at(";;") || self.looking_at(";&") {
            return Ok(true);
        }
        match self.ahead() {
            Some((text, _)) if until.contains(&text.as_str()) => Ok(true),
            Some((text, _)) if CLOSING.contains(&text.as_str()) => {
                self.error("this closes something that was not opened")
            }
            _ => Ok(false),
        }
    }

    fn pipeline(&mut self) -> Parsed<Command> {
        let start = self.at;
        loop {
            self.blanks();
            let before = self.at;
            if self.take(&["time"]) {
                self.blanks();
                if self.looking_at("-") {
                    // To a shell called `sh` this is the program of that name; it runs the same command.
                    self.at = before;
                    break;
                }
                if matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | ')')) {
                    return self.error("`time` has no command");
                }
            } else if !self.take(&["!"]) {
                break;
            }
        }
        let mut commands = vec![self.deeper(Self::command)?];
        loop {
            self.blanks();
            if self.looking_at("||") || !self.looking_at("|") {
                break;
            }
            let both = self.looking_at("|&");
            self.at += if both { 2 } else { 1 };
            if let Some(before) = commands.last_mut().filter(|_| both) {
                // `2>&1`, as the last of its redirections.
                let target = Word { parts: vec![Part::Plain("1".to_owned())], span: before.span };
                before.redirects.push(Redirect {
                    operator: Operator::Duplicate,
                    target,
                    body: Rc::default(),
                    descriptor: "2".to_owned(),
                    default_descriptor: false,
                });
            }
            self.lines()?;
            commands.push(self.deeper(Self::command)?);
        }
        match commands.pop() {
            Some(only) if commands.is_empty() => Ok(only),
            last => {
                commands.extend(last);
                Ok(Command { kind: Kind::Pipeline(commands), redirects: Vec::new(), span: self.span(start) })
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        self.blanks();
        let start = self.at;
        let Some(kind) = self.compound()? else {
            return self.simple(start);
        };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        Ok(Command { kind, redirects, span: self.span(start) })
    }

    fn compound(&mut self) -> Parsed<Option<Kind>> {
        if self.looking_at("((") {
            let start = self.at;
            self.at += 2;
            if let Some(parts) = self.arithmetic()? {
                return Ok(Some(Kind::Arithmetic(parts)));
            }
            self.at = start;
        }
        if self.eat("(") {
            let list = self.some_list(&[])?;
            return self.close().map(|()| Some(Kind::Subshell(list)));
        }
        let Some((word, end)) = self.ahead() else { return Ok(None) };
        let start = self.at;
        self.at = end;
        let kind = match word.as_str() {
            "{" => {
                let list = self.some_list(&["}"])?;
                self.keyword("}")?;
                Kind::Group(list)
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                let condition = self.some_list(&["do"])?;
                Kind::Loop { condition, body: self.body()? }
            }
            "for" => self.counted(true)?,
            "select" => self.counted(false)?,
            "case" => self.case()?,
            "function" => self.function()?,
            "[[" => Kind::Test(self.test()?),
            "coproc" => self.coprocess()?,
            text if CLOSING.contains(&text) || matches!(text, "in" | "]]") => {
                return self.error("this closes something that was not opened");
            }
            name if !name.contains('=') && (self.looking_at("(") || self.blank_then_parentheses()) => {
                self.blanks();
                self.at += 1;
                self.blanks();
                self.close()?;
                self.function_body(word.clone())?
            }
            _ => {
                self.at = start;
                return Ok(None);
            }
        };
        Ok(Some(kind))
    }

    fn blank_then_parentheses(&self) -> bool {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        rest.strip_prefix('(').is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(')'))
    }

    fn close(&mut self) -> Parsed<()> {
        match self.eat(")") {
            true => Ok(()),
            false => self.error("a `)` is missing"),
        }
    }

    fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        self.lines()?;
        match self.take(&[keyword]) {
            true => Ok(()),
            false => self.error("the end of a compound command is missing"),
        }
    }

    fn body(&mut self) -> Parsed<List> {
        self.keyword("do")?;
        let body = self.some_list(&["done"])?;
        self.keyword("done")?;
        Ok(body)
    }

    fn conditional(&mut self) -> Parsed<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.some_list(&["then"])?;
            self.keyword("then")?;
            let body = self.some_list(&["elif", "else", "fi"])?;
            branches.push((condition, body));
            self.lines()?;
            if self.take(&["else"]) {
                let otherwise = Some(self.list(&["fi"])?);
                self.keyword("fi")?;
                return Ok(Kind::If { branches, otherwise });
            }
            if self.take(&["fi"]) {
                return Ok(Kind::If { branches, otherwise: None });
            }
            if !self.take(&["elif"]) {
                return self.error("an `if` has no end");
            }
        }
    }

    fn counted(&mut self, fixed: bool) -> Parsed<Kind> {
        self.blanks();
        if self.eat("((") {
            let Some(expression) = self.arithmetic()? else {
                return self.error("a `for ((` has no end");
            };
            let semicolons = |part: &Part| match part {
                Part::Plain(text) => text.matches(';').count(),
                _ => 0,
            };
            if expression.iter().map(semicolons).sum::<usize>() != 2 {
                return self.error("a `for ((` has three expressions");
            }
            self.blanks();
            self.eat(";");
            return Ok(Kind::ArithmeticFor { expression, body: self.body()? });
        }
        let variable = match self.word()?.as_ref().and_then(Word::plain) {
            Some(name) if is_name(name) => name.to_owned(),
            _ => return self.error("a loop has no variable"),
        };
        self.lines()?;
        let mut words = None;
        if self.take(&["in"]) {
            let mut found = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => found.push(word),
                    None => break,
                }
            }
            words = Some(found);
            match self.peek() {
                Some(';') => self.at += 1,
                Some('\n') => self.line_end()?,
                _ => return self.error("a loop has no `do`"),
            }
        } else {
            self.eat(";");
        }
        Ok(Kind::For { variable, words, fixed, body: self.body()? })
    }

    fn case(&mut self) -> Parsed<Kind> {
        self.blanks();
        let Some(word) = self.word()? else { return self.error("a `case` has no word") };
        self.keyword("in")?;
        let mut items = Vec::new();
        loop {
            self.lines()?;
            if self.take(&["esac"]) {
                return Ok(Kind::Case { word, items });
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(pattern) => patterns.push(pattern),
                    None => return self.error("a `case` has no pattern"),
                }
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.close()?;
            let body = self.list(&["esac"])?;
            items.push((patterns, body));
            self.lines()?;
            let ended = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            if !ended && !self.looking_at("esac") {
                return self.error("a `case` has no end");
            }
        }
    }

    fn function(&mut self) -> Parsed<Kind> {
        self.blanks();
        let name = match self.word()?.as_ref().and_then(Word::plain) {
            Some(name) => name.to_owned(),
            None => return self.error("the name of a function is not plain text"),
        };
        self.blanks();
        if self.eat("(") {
            self.blanks();
            self.close()?;
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: String) -> Parsed<Kind> {
        self.lines()?;
        let body = self.deeper(Self::command)?;
        match body.kind {
            Kind::Simple { .. } | Kind::Coprocess(_) | Kind::Function { .. } | Kind::Pipeline(_) => {
                self.error("a function has no body")
            }
            _ => Ok(Kind::Function { name, body: Rc::new(body) }),
        }
    }

    fn coprocess(&mut self) -> Parsed<Kind> {
        self.blanks();
        let start = self.at;
        if let Some((_, end)) = self.ahead().filter(|(name, _)| is_name(name) && !starts_compound(name)) {
            // A name counts only before a compound command.
            self.at = end;
            self.blanks();
            let compound =
                self.looking_at("(") || self.ahead().is_some_and(|(word, _)| starts_compound(&word));
            if compound {
                return self.error("a coprocess with a name is not supported");
            }
            self.at = start;
        }
        Ok(Kind::Coprocess(Box::new(self.deeper(Self::command)?)))
    }

    fn simple(&mut self, start: usize) -> Parsed<Command> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let Some(word) = self.word()? else { break };
            // `declare x=(...)` takes arrays too.
            let declares = words
                .first()
                .and_then(Word::plain)
                .is_some_and(|name| matches!(name, "declare" | "typeset" | "local" | "export" | "readonly"));
            if (words.is_empty() || (declares && self.looking_at("(")))
                && let Some(assignment) = self.assignment(&word)?
            {
                if declares {
                    words.push(Word { parts: vec![Part::Quoted(assignment.name.clone())], span: word.span });
                }
                assignments.push(assignment);
                continue;
            }
            // In `$(...)` bash rewrites the command with redirections last and reads that: then it is a
            // keyword.
            let is_first = words.is_empty() && !redirects.is_empty();
            if is_first && word.plain().is_some_and(|word| KEYWORDS.contains(&word)) {
                return self.error("a keyword after a redirection");
            }
            words.push(word);
        }
        if self.looking_at("(") {
            return self.error("an unexpected `(`");
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return self.error("a command is missing");
        }
        Ok(Command { kind: Kind::Simple { assignments, words }, redirects, span: self.span(start) })
    }

    fn assignment(&mut self, word: &Word) -> Parsed<Option<Assignment>> {
        let Some(Part::Plain(first)) = word.parts.first() else { return Ok(None) };
        let name: String = first.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if !is_name(&name) {
            return Ok(None);
        }
        let rest = &first[name.len()..];
        if rest.starts_with('[') {
            // The end of the index does not matter: any `]=` makes it an assignment of one element.
            let closes = word
                .parts
                .iter()
                .any(|part| matches!(part, Part::Plain(text) if text.contains("]=") || text.contains("]+=")));
            let value = AssignedValue::Word(word.clone());
            return Ok(closes.then_some(Assignment { name, value, append: false, indexed: true }));
        }
        let append = rest.starts_with("+=");
        let Some(value) = rest.strip_prefix("+=").or_else(|| rest.strip_prefix('=')) else {
            return Ok(None);
        };
        if value.is_empty() && word.parts.len() == 1 && self.eat("(") {
            let mut elements = Vec::new();
            loop {
                self.lines()?;
                if self.eat(")") {
                    break;
                }
                match self.word()? {
                    Some(element) => elements.push(element),
                    None => return self.error("an array has no end"),
                }
            }
            if !matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>')) {
                return self.error("text directly after an array");
            }
            let value = AssignedValue::Array(elements);
            return Ok(Some(Assignment { name, value, append, indexed: false }));
        }
        let mut parts = word.parts.clone();
        parts[0] = Part::Plain(value.to_owned());
        let value = AssignedValue::Word(Word { parts, span: word.span });
        Ok(Some(Assignment { name, value, append, indexed: false }))
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let start = self.at;
        let rest = self.rest();
        let mut descriptor = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(inner) = rest.strip_prefix('{') {
            let name: String = inner.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            // `{a[i]}>f` runs the commands in the subscript.
            let joined = inner.chars().take(256).collect::<String>().replace("\\\n", "");
            if joined.split_once('[').is_some_and(|(name, _)| is_name(name)) {
                return self.error("a descriptor in an array element is not supported");
            }
            let end = name.len() + 2;
            if is_name(&name)
                && rest.get(end - 1..).is_some_and(|rest| rest.starts_with("}<") || rest.starts_with("}>"))
            {
                descriptor = end;
            }
        }
        let named = &rest[..descriptor];
        self.at += descriptor;
        if self.looking_at("<(") || self.looking_at(">(") {
            self.at = start;
            return Ok(None);
        }
        const OPERATORS: &[(&str, Operator)] = &[
            ("<<<", Operator::HereString),
            ("<<-", Operator::HereDocument),
            ("<<", Operator::HereDocument),
            ("<&", Operator::Duplicate),
            ("<>", Operator::ReadWrite),
            ("<", Operator::Read),
            (">>", Operator::Append),
            (">&", Operator::Duplicate),
            (">|", Operator::Write),
            (">", Operator::Write),
            ("&>>", Operator::Both),
            ("&>", Operator::Both),
        ];
        let found = OPERATORS.iter().find(|(text, _)| self.looking_at(text));
        let Some((text, operator)) = found.filter(|(text, _)| named.is_empty() || !text.starts_with('&'))
        else {
            self.at = start;
            return Ok(None);
        };
        self.at += text.len();
        self.blanks();
        let Some(target) = self.word()? else { return self.error("a redirection has no target") };
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if target.plain().is_some_and(number) && matches!(self.peek(), Some('<' | '>')) {
            return self.error("a redirection is followed by another one");
        }
        let body = Rc::new(OnceCell::new());
        if *operator == Operator::HereDocument {
            let (delimiter, quoted) = self.delimiter(&target)?;
            self.pending.push(Pending { delimiter, quoted, strip: *text == "<<-", body: body.clone() });
        }
        let default_descriptor = named.is_empty() || named == if text.starts_with('<') { "0" } else { "1" };
        let descriptor = named.to_owned();
        Ok(Some(Redirect { operator: *operator, target, body, descriptor, default_descriptor }))
    }

    fn delimiter(&self, word: &Word) -> Parsed<(String, bool)> {
        let (mut delimiter, mut quoted) = (String::new(), false);
        for part in &word.parts {
            match part {
                Part::Plain(text) => delimiter.push_str(text),
                Part::Quoted(text) => {
                    delimiter.push_str(text);
                    quoted = true;
                }
                Part::Double(parts) => {
                    quoted = true;
                    for part in parts {
                        match part {
                            Part::Quoted(text) => delimiter.push_str(text),
                            _ => return self.error("the delimiter of a here-document is not supported"),
                        }
                    }
                }
                _ => return self.error("the delimiter of a here-document is not supported"),
            }
        }
        match delimiter.contains('\n') || delimiter.is_empty() {
            true => self.error("the delimiter of a here-document is not supported"),
            false => Ok((delimiter, quoted)),
        }
    }
}
