"""What mkdocs calls: adds the pages that are made, and turns links to files into links to pages.

A page's place in the repository is where it was written; origin() of pages.py tells it. Links are
written for a reader of the repository, and a link to what is no page fails the build.
Floor: website/, which is no part of the package.
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

import commands
import pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
# Docstrings name pages as they lie in the repository.
# Where a file belongs is for who works on it.
FLOOR = re.compile(r"Floor: [\w/]+\. ?")
STYLE = Path(__file__).parent / "site.css"
NAMED = re.compile(r"(?<![\w/\"])docs/([A-Z_]+)\.md(?:'s)?(?![^<]*</a>)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in {**pages.made(), "commands.md": commands.page()}.items():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, STYLE.name, abs_src_path=str(STYLE)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return _outside_code(markdown, lambda text: _with_links(text, page.file.src_uri))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if not page.file.src_uri.startswith("python/"):
        return html
    html = FLOOR.sub("", html)
    return NAMED.sub(lambda found: f'<a href="../{found[1]}.html">{found[0]}</a>', html)


def on_post_build(config: MkDocsConfig) -> None:
    """A name that a module offers, but that has no docstring, would be missing without a word."""
    for module, page, names in pages.interfaces():
        html = (Path(config.site_dir) / page).with_suffix(".html").read_text()
        missing = [name for name in names if f'id="{module}.{name}"' not in html]
        if missing:
            raise PluginError(f"{page} lacks {', '.join(missing)}: give each a docstring")


def _with_links(text: str, path: str) -> str:
    folder = posixpath.dirname(pages.origin(path))

    def to_page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        found = pages.page_of(target)
        if found is None:
            raise PluginError(
                f"{pages.origin(path)} links to {target}, which is no page of the site"
            )
        relative = posixpath.relpath(found, posixpath.dirname(path) or ".")
        return f"{link[1]}{relative}{link[3]}"

    return LINK.sub(to_page, text)


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
