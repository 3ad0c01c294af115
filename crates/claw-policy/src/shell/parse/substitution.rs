//! Expansions: parameters, commands, arithmetic, and tests in `[[`.

use std::rc::Rc;

use super::word::{Parts, is_name};
use super::{Parsed, Parser};
use crate::shell::syntax::{List, Parameter, Part, Word};

impl Parser<'_> {
    /// Parses what a `$` begins; `None` if it stands for itself.
    pub(super) fn dollar(&mut self, quoted: bool) -> Parsed<Option<Part>> {
        self.deeper(|parser| parser.dollar_inner(quoted))
    }

    fn dollar_inner(&mut self, quoted: bool) -> Parsed<Option<Part>> {
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                if self.looking_at("(") {
                    let start = self.at;
                    self.at += 1;
                    let pending = self.pending.len();
                    if let Some(parts) = self.arithmetic()? {
                        return Ok(Some(Part::Arithmetic(parts)));
                    }
                    self.pending.truncate(pending);
                    self.at = start;
                }
                Ok(Some(Part::Command(self.enclosed_list()?)))
            }
            Some('{') => {
                self.at += 1;
                self.parameter(quoted).map(Some)
            }
            Some('[') => self.error("`$[` is not supported; write `$((`"),
            Some('\\') if self.looking_at("\\\n") => self.error("an expansion is split over two lines"),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                self.at += end;
                if self.looking_at("\\\n") {
                    return self.error("an expansion is split over two lines");
                }
                Ok(Some(named(&rest[..end])))
            }
            // Bash and a reader see the end of this differently.
            Some('$') if ["${", "$(", "$[", "$'"].iter().any(|start| self.looking_at(start)) => {
                self.error("`$$` before an opening brace, parenthesis or quote")
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                Ok(Some(named(c.encode_utf8(&mut [0; 4]))))
            }
            _ => Ok(None),
        }
    }

    /// Parses commands up to the closing parenthesis, after the opening one.
    pub(super) fn enclosed_list(&mut self) -> Parsed<Rc<List>> {
        self.deeper(|parser| {
            let outer = std::mem::take(&mut parser.pending);
            let start = parser.at;
            let list = parser.list(&[])?;
            if !parser.pending.is_empty() {
                return parser.error("a here-document has no body");
            }
            let lines = parser.text.get(start..parser.at).is_some_and(|text| text.contains('\n'));
            if lines && !outer.is_empty() {
                return parser
                    .error("a here-document before a substitution of several lines is not supported");
            }
            parser.pending = outer;
            match parser.eat(")") {
                true => Ok(Rc::new(list)),
                false => parser.error("a `)` is missing"),
            }
        })
    }

    pub(super) fn backquoted(&mut self, in_double: bool) -> Parsed<Part> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                None => return self.error("a backquote is not closed"),
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some('"') if in_double => text.push('"'),
                    Some(c) => {
                        text.push('\\');
                        text.push(c);
                    }
                    None => return self.error("a backquote is not closed"),
                },
                Some(c) => text.push(c),
            }
        }
        let mut inner = self.inner(&text, self.span(start));
        let list = inner.deeper(|parser| parser.list(&[]))?;
        match inner.at == text.len() && inner.pending.is_empty() {
            true => Ok(Part::Command(Rc::new(list))),
            false => inner.error("the text in backquotes is not a command"),
        }
    }

    fn parameter(&mut self, quoted: bool) -> Parsed<Part> {
        let mut parameter = Parameter::default();
        let rest = self.rest();
        let (first, second) = (rest.chars().next(), rest.chars().nth(1));
        if matches!(first, Some('#' | '!'))
            && second.is_some_and(|c| {
                c != '}' && c != ':' && c != first.unwrap_or(' ') && !"-+=?%/^,@".contains(c)
            })
        {
            parameter.operator = if first == Some('#') { "len".to_owned() } else { "indirect".to_owned() };
            self.at += 1;
        }
        let rest = self.rest();
        let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = if name == 0 && rest.starts_with(|c| "@*#?$!-".contains(c)) { 1 } else { name };
        parameter.name = rest[..name].to_owned();
        if name == 0
            || !(name == 1 || is_name(&parameter.name) || parameter.name.bytes().all(|b| b.is_ascii_digit()))
        {
            return self.error("the name in an expansion is not valid");
        }
        self.at += name;
        if self.eat("[") {
            let mut parts = Parts::default();
            loop {
                match self.peek() {
                    None | Some('[') => return self.error("the index in an expansion is not supported"),
                    Some(']') => break,
                    Some('\'') if quoted => return self.error("the index in an expansion is not supported"),
                    Some(c) => self.unquoted(c, &mut parts)?,
                }
            }
            self.at += 1;
            parameter.index = Some(parts.finish());
        }
        if self.eat("}") {
            return Ok(Part::Parameter(Box::new(parameter)));
        }
        let operators = [
            ":-", ":=", ":+", ":?", "-", "=", "+", "?", "##", "#", "%%", "%", "//", "/", "^^", "^", ",,",
            ",", "@", ":", "*",
        ];
        let Some(operator) = operators.iter().find(|operator| self.looking_at(operator)) else {
            return self.error("the operator of an expansion is not supported");
        };
        if !parameter.operator.is_empty() && *operator != "@" && *operator != "*" {
            // `${!x:-y}` and the like: the expansion is not followed, but its parts are.
            parameter.operator.push(' ');
        }
        self.at += operator.len();
        parameter.operator.push_str(operator);
        let mut parts = Parts::default();
        loop {
            match self.peek() {
                None => return self.error("a `${` is not closed"),
                Some('}') => break,
                // Whether this quotes depends on the operator; honest scripts do not contain it.
                Some('\'') if quoted => return self.error("a `'` in an expansion in double quotes"),
                Some('$') if self.looking_at("$'") && quoted => {
                    return self.error("a `'` in an expansion in double quotes");
                }
                Some('<' | '>') if self.looking_at("<(") || self.looking_at(">(") => {
                    return self.error("a process substitution in an expansion");
                }
                Some(c) => self.unquoted(c, &mut parts)?,
            }
        }
        self.at += 1;
        parameter.word = parts.finish();
        Ok(Part::Parameter(Box::new(parameter)))
    }

    /// Parses an arithmetic expression up to `))`, after its start; `None` if it is none.
    pub(super) fn arithmetic(&mut self) -> Parsed<Option<Vec<Part>>> {
        let mut parts = Parts::default();
        let mut open = 0usize;
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(')') if open == 0 => {
                    return Ok(match self.eat("))") {
                        true => Some(parts.finish()),
                        false => None,
                    });
                }
                Some(c @ ('(' | ')')) => {
                    open = if c == '(' { open + 1 } else { open - 1 };
                    self.at += 1;
                    parts.plain(c);
                }
                Some('\'') => return self.error("a `'` in an arithmetic expression"),
                Some('#') => {
                    self.at += 1;
                    parts.plain('#');
                }
                Some(c) => self.deeper(|parser| parser.unquoted(c, &mut parts))?,
            }
        }
    }

    /// Parses the text between `[[` and `]]`: its words, without its operators.
    pub(super) fn test(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            while matches!(self.peek(), Some(' ' | '\t' | '\n')) {
                self.at += 1;
            }
            if matches!(self.peek(), None | Some('#')) {
                return self.error("a `[[` is not closed");
            }
            if self.looking_at("]]") {
                let after = self.rest()[2..].chars().next();
                if after.is_none_or(|c| " \t\n;&|()<>".contains(c)) {
                    self.at += 2;
                    return Ok(words);
                }
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => self.at += 1,
            }
        }
    }
}

fn named(name: &str) -> Part {
    Part::Parameter(Box::new(Parameter { name: name.to_owned(), bare: true, ..Parameter::default() }))
}
