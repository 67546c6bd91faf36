"""Hosts where a benchmark itself may be published, with its answers: kept by hand, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Publisher:
    """A host, with every host below it, that is known to publish what others made.

    Args:
        host: Its name.
        kind: What it is.
    """

    host: str
    kind: str

    def has(self, name: str) -> bool:
        """Whether a host is this one or below it."""
        return f".{name}".endswith(f".{self.host}")


CODE, DATA, PACKAGES = "a code host", "a dataset hub", "a package mirror"
IMAGES, PAPERS, ARCHIVE = "an image registry", "a host of papers", "an archive of the web"
ANSWERS, SEARCH, STORE, COPIES = "a question-and-answer site", "a search engine", "an object store", "a mirror of code"
# What each kind has to do with a benchmark.
REASONS = {
    CODE: "the repositories of benchmarks, of their graders and of the fixes they ask for are there",
    DATA: "data sets are there with all their columns, the answers among them",
    PACKAGES: "packages are there that hold tasks and tests, and later versions that hold the fix",
    IMAGES: "images of tasks are there with the solved repository in a layer",
    PAPERS: "papers and their supplements print tasks with answers",
    ARCHIVE: "it has a copy of every other host of this list",
    ANSWERS: "solutions are discussed there by the name of the task",
    SEARCH: "its results and its cache show pages of every other host of this list",
    STORE: "anybody's bucket is below this one name, those of benchmarks too",
    COPIES: "it serves files of code hosts and packages under its own name",
}
_HOSTS = {
    CODE: (
        *("github.com", "githubusercontent.com", "github.io", "ghe.com", "gitlab.com", "gitlab.io", "bitbucket.org"),
        *("codeberg.org", "gitea.com", "gitee.com", "sr.ht", "sourceforge.net", "launchpad.net", "savannah.gnu.org"),
        *("dev.azure.com", "source.android.com", "googlesource.com", "pastebin.com", "replit.com"),
    ),
    DATA: (
        *("hf.co", "kaggle.com", "zenodo.org", "figshare.com", "openml.org", "data.world", "modelscope.cn"),
        *("archive.ics.uci.edu", "allenai.org", "commoncrawl.org", "osf.io", "datahub.io"),
    ),
    PACKAGES: (
        *("npmjs.org", "npmjs.com", "yarnpkg.com", "docs.rs", "packagist.org", "nuget.org", "pkg.go.dev"),
        *("repo1.maven.org", "repo.maven.apache.org", "cran.r-project.org", "hackage.haskell.org", "hex.pm"),
        *("tuna.tsinghua.edu.cn", "mirrors.aliyun.com"),
    ),
    IMAGES: ("docker.io", "docker.com", "public.ecr.aws", "mcr.microsoft.com"),
    PAPERS: ("arxiv.org", "openreview.net", "aclanthology.org", "paperswithcode.com", "semanticscholar.org"),
    ARCHIVE: ("archive.org", "archive.is", "archive.today", "softwareheritage.org"),
    ANSWERS: ("stackoverflow.com", "stackexchange.com", "leetcode.com", "reddit.com", "quora.com"),
    SEARCH: ("google.com", "bing.com", "duckduckgo.com", "yandex.com", "baidu.com", "brave.com", "sourcegraph.com"),
    STORE: (
        *("s3.amazonaws.com", "storage.googleapis.com", "blob.core.windows.net", "r2.dev", "r2.cloudflarestorage.com"),
        *("digitaloceanspaces.com", "backblazeb2.com", "drive.google.com", "dropbox.com"),
    ),
    COPIES: ("jsdelivr.net", "unpkg.com", "cdnjs.cloudflare.com", "githack.com", "statically.io", "esm.sh"),
}
PUBLISHERS = tuple(Publisher(host, kind) for kind, hosts in _HOSTS.items() for host in hosts)
# Names that stand for such a place wherever they are a label of a host: what runs there, or what it is a mirror of.
LABELS = {
    **dict.fromkeys(("github", "gitlab", "gitea", "forgejo", "bitbucket", "gerrit"), CODE),
    **dict.fromkeys(("huggingface", "kaggle", "dataverse"), DATA),
    **dict.fromkeys(
        ("pypi", "pythonhosted", "devpi", "npm", "crates", "rubygems", "golang", "anaconda", "conda"), PACKAGES
    ),
    **dict.fromkeys(("artifactory", "nexus"), PACKAGES),
    **dict.fromkeys(("ghcr", "quay", "gcr", "harbor"), IMAGES),
    "s3": STORE,
}


def kind_of(pattern: str) -> str:
    """What publishes behind an allowed host, or behind one that a pattern allows; empty where nothing is known to."""
    name = pattern.lower().removeprefix("*.").partition(":")[0].rstrip(".")
    known = [each for each in PUBLISHERS if each.has(name)]
    if not known and pattern.startswith("*."):  # a pattern may allow a host far below it
        known = [each for each in PUBLISHERS if each.host.endswith(f".{name}")]
    if known:
        return max(known, key=lambda each: len(each.host)).kind
    labels = re.split(r"[.:]", pattern.lower())
    return next((kind for label, kind in LABELS.items() if label in labels), "")
