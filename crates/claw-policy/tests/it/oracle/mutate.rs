//! Mutants of commands: the same in other quotes, wrapped, joined, or damaged. Bash decides what they mean,
//! so a mutation need not keep the meaning.

/// Makes mutants, the same ones for the same seed.
pub(super) struct Mutator {
    state: u64,
    corpus: Vec<String>,
}

impl Mutator {
    pub(super) fn new(seed: u64, corpus: Vec<String>) -> Self {
        Self { state: seed | 1, corpus }
    }

    /// Returns the next mutant. The commands take turns; the first time each comes unchanged.
    pub(super) fn next(&mut self, turn: usize) -> String {
        let mut command = self.corpus[turn % self.corpus.len()].clone();
        if turn < self.corpus.len() {
            return command;
        }
        for _ in 0..1 + self.below(3) {
            command = match self.below(10) {
                0..=3 => self.requote(&command),
                4..=6 => self.wrap(&command),
                7 | 8 => self.restructure(&command),
                _ => self.damage(&command),
            };
        }
        command
    }

    /// xorshift: enough for choosing.
    fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap_or(0) % most.max(1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A run of letters and digits somewhere in the command.
    fn word(&mut self, command: &str) -> Option<(usize, usize)> {
        let mut words = Vec::new();
        let mut start = None;
        for (at, c) in command.char_indices().chain([(command.len(), ' ')]) {
            match (c.is_ascii_alphanumeric() || "-/._".contains(c), start) {
                (true, None) => start = Some(at),
                (false, Some(from)) => {
                    words.push((from, at));
                    start = None;
                }
                _ => {}
            }
        }
        (!words.is_empty()).then(|| words[self.below(words.len())])
    }

    fn requote(&mut self, command: &str) -> String {
        let Some((start, end)) = self.word(command) else { return command.to_owned() };
        let word = &command[start..end];
        let middle = start + self.below(word.len());
        let (head, tail) = (&command[start..middle], &command[middle..end]);
        let first = word.as_bytes()[0];
        let replaced = match self.below(16) {
            0 => format!("{head}''{tail}"),
            1 => format!("{head}\"\"{tail}"),
            2 => format!("{head}\\{tail}"),
            3 => format!("'{word}'"),
            4 => format!("\"{word}\""),
            5 => format!("$'{word}'"),
            6 => format!("$'\\x{first:02x}'{}", &word[1..]),
            7 => format!("$'\\{first:03o}{}'", &word[1..]),
            8 => format!("{head}\\\n{tail}"),
            9 => format!("$(echo {word})"),
            10 => format!("\"$(printf %s {word})\""),
            11 => format!("`echo {word}`"),
            12 => format!("${{Q:-{word}}}"),
            13 => format!("{head}{{{tail},x}}"),
            14 => format!("$\"{word}\""),
            _ => format!("{head}$Q{tail}"),
        };
        format!("{}{replaced}{}", &command[..start], &command[end..])
    }

    fn wrap(&mut self, command: &str) -> String {
        let quoted = format!("'{}'", command.replace('\'', "'\\''"));
        let own_line = command.contains("<<") || command.contains('#');
        let end = if own_line { "\n" } else { "; " };
        match self.below(34) {
            0 => format!("bash -c {quoted}"),
            1 => format!("sh -c {quoted}"),
            2 => format!("eval {quoted}"),
            3 => format!("({command}{end})").replace("; )", ")"),
            4 => format!("{{ {command}{end}}}"),
            5 => format!("if true; then {command}{end}fi"),
            6 => format!("for i in 1; do {command}{end}done"),
            7 => format!("case a in a) {command}{end};; esac").replace("; ;;", ";;"),
            8 => format!("f() {{ {command}{end}}}; f"),
            9 => format!("X={quoted}; eval \"$X\""),
            10 => format!("echo {quoted} | sh"),
            11 => format!("printf '%s\\n' {quoted} | bash"),
            12 => format!("bash <<'MARK'\n{command}\nMARK"),
            13 => format!("bash <<< {quoted}"),
            14 => format!("trap {quoted} EXIT"),
            15 => format!("echo \"$({command}{end})\"").replace("; )", ")"),
            16 => format!("X=$({command}{end})").replace("; )", ")"),
            17 => format!("! {command}"),
            18 => format!("time {command}"),
            19 => format!("command {command}"),
            20 => format!("builtin eval {quoted}"),
            21 => format!("exec {command}"),
            22 => format!("X=1 {command}"),
            23 => format!("bash -c 'eval \"$1\"' _ {quoted}"),
            24 => format!("bash -c '\"$@\"' _ {command}"),
            25 => format!("set -- {command}\n\"$@\""),
            26 => format!("f() {{ \"$@\"; }}; f {command}"),
            27 => format!("a=({command}); \"${{a[@]}}\""),
            28 => format!("cat <<MARK\n$({command}\n)\nMARK"),
            29 => format!("echo {quoted} > s; sh s"),
            30 => format!("shopt -s expand_aliases\nalias zz={quoted}\nzz"),
            31 => format!("{command} 2>&1"),
            32 => format!("function g {{ {command}{end}}} >/dev/null; g a b"),
            _ => format!("while true; do {command}{end}break; done"),
        }
    }

    fn restructure(&mut self, command: &str) -> String {
        let other = self.below(self.corpus.len());
        let other = self.corpus[other].clone();
        let join = self.pick(&["; ", "\n", " && ", " || ", " | ", " & "]);
        match self.below(10) {
            0..=2 => format!("{command}{join}{other}"),
            3 => format!("{command} # {other}"),
            4 => match command.find(' ') {
                Some(at) => format!("{}${{IFS}}{}", &command[..at], &command[at + 1..]),
                None => command.to_owned(),
            },
            5 => command.replace(' ', "\t "),
            6 => match self.word(command) {
                Some((start, end)) => {
                    format!("V={}\n{}$V{}", &command[start..end], &command[..start], &command[end..])
                }
                None => command.to_owned(),
            },
            7 => match self.word(command) {
                Some((start, end)) => {
                    format!("V={}; {}\"${{V}}\"{}", &command[start..end], &command[..start], &command[end..])
                }
                None => command.to_owned(),
            },
            8 => format!("> out {command}"),
            _ => format!("{command} < in"),
        }
    }

    fn damage(&mut self, command: &str) -> String {
        let places: Vec<usize> = command.char_indices().map(|(at, _)| at).collect();
        if places.is_empty() {
            // A command of one character that was damaged before.
            return command.to_owned();
        }
        let at = places[self.below(places.len())];
        let (head, tail) = command.split_at(at);
        let rest: String = tail.chars().skip(1).collect();
        match self.below(4) {
            0 => format!("{head}{rest}"),
            1 => {
                let piece = self.pick(&[
                    "'", "\"", "\\", "$", "`", "(", ")", "{", "}", ";", "|", "&", "<", ">", "\n", " ", "#",
                    "!", "=", "*", "~", "[", "]", "\\\n", "$(", "${", "<<<", "{a,b}", "$@",
                ]);
                format!("{head}{piece}{tail}")
            }
            2 => format!("{head}{}{tail}", tail.chars().next().unwrap_or(' ')),
            _ => format!("{tail} {head}"),
        }
    }
}
