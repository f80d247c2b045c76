"""Sphinx's settings for the guide: `make docs` builds docs/build/html, and nothing is fetched."""

import inspect
import itertools
import os
import re
from importlib import metadata
from pathlib import Path

project = "fedsim"
author = "the fedsim authors"
copyright = author
release = metadata.version("fedsim-theory")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["build", "changes", "notebooks", "templates"]
myst_heading_anchors = 3
suppress_warnings = ["ref.python"]  # one word may name a field of several classes

highlight_language = "none"  # formulas of docstrings are no Python
html_theme = "furo"
html_title = "fedsim"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_use_param = False  # types are words here, not links
napoleon_use_rtype = False
napoleon_use_ivar = True  # fields in one list
python_maximum_signature_line_length = 90

HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)+)\]\(([^)#\s]+)\)")
CODE = re.compile(r"(``.+?``|`[^`]+`)")
LIST = re.compile(r"\s*(-|\*|\d+\.) ")


def into_the_checkout(app, page, source):
    """Links that leave docs/, or lead to a folder or a program, open the file in the checkout."""
    folder = (HERE / page).parent
    built = (Path(app.outdir) / page).parent

    def changed(match):
        target = (folder / match[2]).resolve()
        if "://" in match[2] or (target.is_relative_to(HERE) and target.suffix == ".md"):
            return match[0]
        return f'<a href="{os.path.relpath(target, built)}">{match[1]}</a>'
    source[0] = LINK.sub(changed, source[0])


def plain(line):
    """A line of plain text as reStructuredText: backticks are code, stars and bars are themselves."""
    parts = CODE.split(re.sub(r"^(\s*)([A-Za-z][.)](\s|$))", "\\1\u200b\\2", line))  # "K." begins no list
    parts[::2] = [re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part) for part in parts[::2]]
    parts[1::2] = [part if part.startswith("``") else f"`{part}`" for part in parts[1::2]]
    return "".join(parts)


def paragraph(lines):
    """A paragraph of a docstring: indented ones are formulas, partly indented ones keep their lines."""
    if lines[0].startswith(" "):
        return ["::", "", *lines]
    if any(line.startswith(" ") for line in lines) and not LIST.match(lines[0]):
        return [f"| {plain(line)}" for line in lines]
    return [plain(line) for line in lines]


def apart(section):
    """A section, with a blank line wherever a name with words beneath it follows a line of its own level."""
    depth = [len(line) - len(line.lstrip()) for line in section]
    for i, line in enumerate(section):
        deeper = 0 < i < len(section) - 1 and depth[i] > 0 and depth[i + 1] > depth[i]
        yield from ([""] if deeper and section[i - 1].strip() and depth[i - 1] == depth[i] else [])
        yield line


def parted(section):
    """A section, and the paragraphs at its end that stand at its margin and are about none of its names."""
    paragraphs = [list(group) for blank, group in itertools.groupby(section, lambda line: not line.strip())
                  if not blank]
    after = [one for one in paragraphs[1:] if not any(line.startswith(" ") for line in one)]
    kept = [one for one in paragraphs if one not in after]
    return ([line for one in kept for line in (*one, "")], [line for one in after for line in (*one, "")])


def from_plain_text(app, what, name, obj, options, lines):
    """Docstrings are written to be read in a terminal: make them reStructuredText, sections for napoleon."""
    starts = [i - 1 for i, line in enumerate(lines) if re.fullmatch(r"\s*---+", line)] + [len(lines)]
    text = []
    for blank, group in itertools.groupby(lines[:starts[0]], lambda line: not line.strip()):
        found = list(group)
        text += found if blank else paragraph(found)
    sections, last_words = [], []
    for first, last in itertools.pairwise(starts):
        section = lines[first:last]
        if section[0].strip() in ("Parameters", "Attributes", "Returns", "Raises"):
            section, after = parted(section)
            last_words += after
        sections += section if section[0].strip() == "Examples" else map(plain, apart(section))
    lines[:] = [*text, *map(plain, last_words), *sections]


def without_metaclass(app, what, name, obj, options, signature, answer):
    """How a class is called: its own signature, where its metaclass only adds hints to errors."""
    if what == "class" and signature == "(*args, **options)":
        own = inspect.signature(obj)
        plain_ones = [one.replace(annotation=one.empty) for one in own.parameters.values()]
        return str(own.replace(parameters=plain_ones, return_annotation=own.empty)), None
    return None


def setup(app):
    """What Sphinx calls."""
    app.connect("source-read", into_the_checkout)
    app.connect("autodoc-process-signature", without_metaclass)
    app.connect("autodoc-process-docstring", from_plain_text, priority=100)
