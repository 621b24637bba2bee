"""Grows the trees of weights-first.txt and weights.txt from labelled pages.

    python3 grow.py PAGES [--judge FOLDS] [--out FOLDER]

PAGES holds `html/ID.html.gz` and `ground-truth/ID.json`, as the development split of WCXB does (the Web Content
Extraction Benchmark of Murrough Foley, CC-BY-4.0). No page of it is in the project, and nothing of a page is in the trees
but thresholds. Wanted: Python 3.11 with lightgbm 4.7, numpy 2 and rapidfuzz 3, and `measure`, which is built by

    cargo build --release -p web-data --example measure --features training

A block is labelled content where the annotated text has at least half of its words in their order. Every page weighs about
the same. The first judge sees a block's own measures; the second also what the first says of the blocks around it, for
which each page is judged by trees that have not seen its site. The trees are the same at each run of one version.

--judge FOLDS writes no trees: each page is judged by trees that have seen no page of its site, in so many parts, and
judged.json gets what would be written of it, as {id: Markdown}.
"""
import argparse, gzip, hashlib, json, os, re, struct, subprocess, sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlparse

os.environ.setdefault("OMP_NUM_THREADS", "1")
import lightgbm
import numpy as np
from rapidfuzz.distance import LCSseq

WORD = re.compile(r"\w+")
HERE = Path(__file__).resolve().parent
CONTEXT = 26  # measures that only the second judge sees; they come last
INNER = 4  # parts of the pages that the second judge learns from
GROWN = dict(objective="binary", num_leaves=15, learning_rate=0.1, min_data_in_leaf=200, bagging_fraction=0.7,
             bagging_freq=1, feature_fraction=0.3, lambda_l2=20, max_bin=63, num_threads=1, force_col_wise=True,
             deterministic=True, seed=1, verbosity=-1)
TREES = 200


class Measure:
    """The program that measures, with its pages asked for one at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what, html, odds=()):
        for part in (what, html, np.asarray(odds, "<f4").tobytes()):
            self.process.stdin.write(struct.pack("<I", len(part)) + part)
        self.process.stdin.flush()
        return self.part(), self.part()

    def part(self):
        length, = struct.unpack("<I", self.process.stdout.read(4))
        return self.process.stdout.read(length)


class Page:
    def __init__(self, folder, name, measure):
        truth = json.loads((folder / "ground-truth" / f"{name}.json").read_text("utf-8"))
        self.name, self.site = name, site(truth["url"])
        self.gold = WORD.findall(((truth.get("ground_truth") or {}).get("main_content") or "").lower())
        self.html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        texts, measures = measure.ask(b"measure", self.html)
        self.words = [WORD.findall(text.lower()) for text in json.loads(texts)]
        self.measures = np.frombuffer(measures, "<f4").reshape(len(self.words), -1) if self.words else np.zeros((0, 0))
        self.label = label(self.words, self.gold) >= 0.5
        length = np.array([len(words) for words in self.words], float)
        self.taught = length > 0
        self.weight = np.minimum(length / max(30, len(self.gold)), 0.5) + 1e-5

    def see(self, measure, odds):
        """The measures with the context that a first judgement gives."""
        if not self.words:
            return self.measures
        return np.frombuffer(measure.ask(b"measure", self.html, odds)[1], "<f4").reshape(len(self.words), -1)


def site(url):
    """The registered name of an address, near enough."""
    names = (urlparse(url).hostname or url).split(".")
    second = {"co", "com", "org", "ac", "gov", "net", "edu"}
    length = 3 if len(names) > 2 and names[-2] in second and len(names[-1]) == 2 else 2
    return ".".join(names[-length:])


def label(blocks, gold):
    """For each block the share of its words that the gold text has in their order."""
    words = [word for block in blocks for word in block]
    owner = [at for at, block in enumerate(blocks) for _ in block]
    found = np.zeros(len(blocks))
    for step in LCSseq.opcodes(words, gold):
        if step.tag == "equal":
            for at in range(step.src_start, step.src_end):
                found[owner[at]] += 1
    shares = found / np.array([max(1, len(block)) for block in blocks])
    threes = set(zip(gold, gold[1:], gold[2:]))
    copies = Counter(map(tuple, blocks))
    for at, block in enumerate(blocks):
        if len(block) >= 4:
            runs = list(zip(block, block[1:], block[2:]))
            share = sum(run in threes for run in runs) / len(runs)
            if share < 0.34:  # words of an order that is common to all texts
                shares[at] = min(shares[at], share)
            if share > 0.8 and copies[tuple(block)] == 1:  # moved to another place in the gold text
                shares[at] = max(shares[at], share)
    return shares


def part(page, parts, salt=""):
    return int.from_bytes(hashlib.sha256((page.site + salt).encode()).digest()[1:5], "big") % parts


def grow(pages, measures):
    x = np.concatenate([measures[page.name][page.taught] for page in pages if page.words])
    y = np.concatenate([page.label[page.taught] for page in pages if page.words])
    weight = np.concatenate([page.weight[page.taught] for page in pages if page.words])
    data = lightgbm.Dataset(x, y.astype(int), weight=weight * len(weight) / weight.sum(), params=GROWN)
    return lightgbm.train(GROWN, data, TREES)


def judge(trees, measures):
    return trees.predict(measures, raw_score=True) if len(measures) else np.zeros(0)


def grow_both(pages, measure):
    """Both judges; the second learns from first judgements of pages whose sites the first had not seen."""
    own = {page.name: page.measures[:, :-CONTEXT] for page in pages}
    seen = {}
    for at in range(INNER):
        first = grow([page for page in pages if part(page, INNER, "x") != at], own)
        for page in (page for page in pages if part(page, INNER, "x") == at):
            seen[page.name] = page.see(measure, judge(first, own[page.name]))
    return grow(pages, own), grow(pages, seen)


def lines(trees):
    """A tree a line: its nodes in depth-first order."""
    def nodes(node):
        if "split_feature" not in node:
            return [f"={node['leaf_value']:.4f}"]
        assert node["decision_type"] == "<="
        limit = node["threshold"] if abs(node["threshold"]) > 1e-30 else 0
        return [f"{node['split_feature']}:{limit:.5g}", *nodes(node["left_child"]), *nodes(node["right_child"])]
    return "".join(" ".join(nodes(tree["tree_structure"])) + "\n" for tree in trees.dump_model()["tree_info"])


def main():
    wanted = argparse.ArgumentParser()
    wanted.add_argument("pages", type=Path)
    wanted.add_argument("--judge", type=int, metavar="FOLDS")
    wanted.add_argument("--out", type=Path, default=HERE.parent / "src")
    wanted.add_argument("--measure", default=HERE.parents[2] / "target/release/examples/measure")
    wanted = wanted.parse_args()
    measure = Measure(wanted.measure)
    names = sorted(path.stem for path in (wanted.pages / "ground-truth").glob("*.json"))
    pages = [Page(wanted.pages, name, measure) for name in names]
    if not wanted.judge:
        first, second = grow_both(pages, measure)
        (wanted.out / "weights-first.txt").write_text(lines(first))
        (wanted.out / "weights.txt").write_text(lines(second))
        return
    written = {}
    for at in range(wanted.judge):
        first, second = grow_both([page for page in pages if part(page, wanted.judge) != at], measure)
        for page in (page for page in pages if part(page, wanted.judge) == at):
            odds = judge(second, page.see(measure, judge(first, page.measures[:, :-CONTEXT])))
            written[page.name] = measure.ask(b"markdown", page.html, odds)[0].decode()
        print(f"judged part {at + 1} of {wanted.judge}", file=sys.stderr, flush=True)
    (wanted.out / "judged.json").write_text(json.dumps(written))


if __name__ == "__main__":
    main()
