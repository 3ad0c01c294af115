#!/usr/bin/env python3
"""Draws what a terminal shows as an SVG: colours, bold text, nothing else.

    tmux capture-pane -e -p | scripts/terminal-picture.py COLUMNS TITLE OUT.svg

A terminal such as tmux has carried out what programs draw over; standard input is what was left to see.
"""
import html
import re
import sys

COLOURS = {
    31: "#f7768e", 32: "#9ece6a", 33: "#e0af68", 34: "#7aa2f7", 35: "#bb9af7", 36: "#7dcfff", 37: "#c0caf5",
    90: "#737aa2", 91: "#f7768e", 92: "#9ece6a", 93: "#e0af68", 94: "#7aa2f7", 95: "#bb9af7", 96: "#7dcfff",
}
PLAIN, BACK = "#c0caf5", "#1a1b26"
WIDTH, HEIGHT = 8.4, 19


def rows(text, columns):
    """Lines of (text, colour, bold), wrapped as a terminal wraps them."""
    colour, bold, line, lines, width = PLAIN, False, [], [], 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r\n|\n|\r)", text):
        if part in ("\r\n", "\n"):
            lines.append(line)
            line, width = [], 0
        elif part == "\r":
            line, width = [], 0
        elif part.startswith("\x1b["):
            if not part.endswith("m"):
                if part.endswith("K"):
                    continue
                continue
            for code in [int(code or 0) for code in part[2:-1].split(";")]:
                if code == 0:
                    colour, bold = PLAIN, False
                elif code == 1:
                    bold = True
                elif code == 2:
                    colour = COLOURS[90]
                elif code in (22, 39):
                    colour, bold = (PLAIN, bold) if code == 39 else (colour, False)
                elif code in COLOURS:
                    colour = COLOURS[code]
        else:
            while part:
                room = columns - width
                line.append((part[:room], colour, bold))
                width += len(part[:room])
                part = part[room:]
                if part:
                    lines.append(line)
                    line, width = [], 0
    if line:
        lines.append(line)
    return lines


def main():
    columns, title, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    lines = [[(f"$ {title}", COLOURS[92], True)]] + rows(sys.stdin.read().rstrip("\n"), columns)
    wide, high = columns * WIDTH + 32, len(lines) * HEIGHT + 56
    print_to = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
        '<circle cx="20" cy="18" r="6" fill="#f7768e"/><circle cx="40" cy="18" r="6" fill="#e0af68"/>'
        '<circle cx="60" cy="18" r="6" fill="#9ece6a"/>',
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,DejaVu Sans Mono,monospace" font-size="14">',
    ]
    for number, line in enumerate(lines):
        at, y = 0, 50 + number * HEIGHT
        for text, colour, bold in line:
            weight = ' font-weight="bold"' if bold else ""
            print_to.append(
                f'<text x="{16 + at * WIDTH:.1f}" y="{y}" fill="{colour}"{weight} xml:space="preserve" '
                f'textLength="{len(text) * WIDTH:.1f}">{html.escape(text)}</text>'
            ) if text.strip() else None
            at += len(text)
    print_to.append("</g></svg>\n")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(line for line in print_to if line))


main()
