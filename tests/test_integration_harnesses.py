"""lm-eval and inspect_ai from PyPI, and OpenAI's Node client, against the gateway.

The harnesses live in an environment that ``scripts/setup_harnesses.sh`` makes; the Node client is installed with npm.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from conftest import ROOT
from gateways import client, gateway
from magicore.datasets import generate
from magicore.store.accounting import role_accounts
from magicore.store.run_store import RunStore
from magicore.testing.hostile import HostileEndpoint, running
from servers import Server
from test_docs import DOCS, blocks

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

HARNESSES = Path(os.environ.get("MAGICORE_HARNESS_VENV", ROOT / ".venv-harness")) / "bin" / "python"
NODE_CLIENT = Path(os.environ.get("MAGICORE_NODE_CLIENT", ROOT / ".venv-node"))


@pytest.fixture
def harness_python() -> str:
    if not HARNESSES.exists():
        pytest.skip("lm-eval and inspect_ai are not installed; scripts/setup_harnesses.sh installs them")
    return str(HARNESSES)


def test_both_harnesses_score_as_magicore_run_does_on_their_prompts(harness_python: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "show_harnesses.py"), "--python", harness_python]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in said] == ["lm-eval", "inspect_ai"]
    assert all("20 questions" in line and line.endswith("0 samples drawn anew: equal") for line in said)


def test_the_plug_ins_work_where_the_harnesses_are(harness_python: str) -> None:
    tests = [str(ROOT / "tests" / name) for name in ("test_harness_inspect.py", "test_harness_lm_eval.py")]
    command = [harness_python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "skipped" not in done.stdout.splitlines()[-1], done.stdout[-3000:]


def test_lm_eval_votes_over_repeats_that_differ_as_the_guide_has_it(harness_python: str, tmp_path: Path) -> None:
    """The guide's files as they are, with an endpoint that keeps to seeds; without their `seed: null` all are equal."""
    for block in blocks(DOCS / "guides" / "lm-eval.md"):
        if block.file is not None:
            (tmp_path / block.file).parent.mkdir(exist_ok=True)
            (tmp_path / block.file).write_text(block.body, encoding="utf-8")
    voted = tmp_path / "tasks" / "voted.yaml"
    text = voted.read_text(encoding="utf-8")
    assert ", seed: null" in text
    alike = text.replace(", seed: null", "").replace("my_task_voted", "my_task_alike")
    (tmp_path / "tasks" / "alike.yaml").write_text(alike, encoding="utf-8")
    rows = [{"question": problem.question, "answer": problem.answer} for problem in generate("small", 5, 7)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with running(HostileEndpoint()) as endpoint:
        arguments = ["-m", "lm_eval", "run", "--model", "local-chat-completions", "--apply_chat_template"]
        arguments += ["--tasks", "my_task_voted,my_task_alike", "--include_path", "tasks", "--log_samples"]
        arguments += ["--output_path", "out", "--model_args"]
        arguments += [f"model=hostile,base_url={endpoint.urls[0]}/chat/completions,num_concurrent=4"]
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
        done = subprocess.run(
            [harness_python, *arguments], cwd=tmp_path, env={**os.environ, **offline}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    distinct = {}
    for name in ("voted", "alike"):
        [file] = tmp_path.rglob(f"samples_my_task_{name}_*.jsonl")
        logged = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert [len(row["resps"][0]) for row in logged] == [8] * 5
        assert all(len(row["filtered_resps"]) == 1 for row in logged)
        distinct[name] = [len(set(row["resps"][0])) for row in logged]
    assert min(distinct["voted"]) > 1 and set(distinct["alike"]) == {1}


NODE = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const question = { model: "weighted-self-consistency:k=3", messages: [{ role: "user", content: "What is 3 plus 4?" }] };
const own = { magicore: { kind: "number" } };
const whole = await client.chat.completions.create({ ...question, ...own });
let text = "", usage = null, reasoning = "";
const stream = await client.chat.completions.create({
  ...question, ...own, stream: true, stream_options: { include_usage: true },
});
for await (const piece of stream) {
  text += piece.choices[0]?.delta?.content ?? "";
  reasoning += piece.choices[0]?.delta?.reasoning_content ?? "";
  usage = piece.usage ?? usage;
}
let refused = null;
try {
  await client.chat.completions.create({ ...question, model: "gpt-4o" });
} catch (error) {
  refused = { name: error.constructor.name, status: error.status, code: error.code };
}
const models = [];
for await (const model of client.models.list()) models.push(model.id);
console.log(JSON.stringify({ whole, text, reasoning, usage, refused, models }));
"""


def test_a_real_server_behind_the_gateway_is_accounted_for(transformers_server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    question: Any = [{"role": "user", "content": "What is 2 + 3?"}]
    with (
        gateway(model=transformers_server.name, prm="arithmetic", orm="random", out=out, max_tokens=48) as url,
        client(url) as openai_client,
    ):
        create = openai_client.chat.completions.create
        own = {"extra_body": {"magicore": {"kind": "number"}}}
        whole: Any = create(model="weighted-self-consistency:k=3", messages=question, **own)
        streamed: Any = create(
            model="magicore:k=2,router=hard,iterations=1", messages=question, stream=True,
            stream_options={"include_usage": True}, **own,
        )  # fmt: skip
        pieces = list(streamed)
    store = RunStore(out / "store.sqlite")
    accounts = role_accounts(store.completion_rows(), store.failed_calls())
    texts = {row.completion.text for row in store.completion_rows()}
    store.close()
    usages = (whole.usage, pieces[-1].usage)
    assert sum(usage.prompt_tokens for usage in usages) == sum(account.usage.prompt for account in accounts) > 0
    assert sum(usage.completion_tokens for usage in usages) == sum(account.usage.completion for account in accounts)
    assert {account.role for account in accounts} == {"solver", "reviewer", "refiner"}
    content = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert {whole.choices[0].message.content, content} <= texts


def test_openai_s_node_client_is_served(tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    if not (NODE_CLIENT / "node_modules" / "openai").is_dir():
        NODE_CLIENT.mkdir(exist_ok=True)
        install = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(NODE_CLIENT), "openai@6"]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"npm cannot install the client: {done.stderr[-300:]}")
    script = NODE_CLIENT / "client.mjs"
    script.write_text(NODE, encoding="utf-8")
    with (
        running(HostileEndpoint()) as endpoint,
        gateway(model=endpoint.name, orm="likelihood", prm="arithmetic") as url,
    ):
        done = subprocess.run(
            [node, str(script), f"{url}/v1"], cwd=NODE_CLIENT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["whole"]["choices"][0]["magicore"]["kind"] == "number"
    assert said["whole"]["usage"]["completion_tokens"] > 0
    assert said["text"].startswith("Step 1: 3 + 4") and "solver: 3 samples" in said["reasoning"]
    assert said["usage"]["total_tokens"] > 0
    assert said["refused"] == {"name": "NotFoundError", "status": 404, "code": "model_not_found"}
    assert {"magicore", "weighted-self-consistency", "mars"} <= set(said["models"])
