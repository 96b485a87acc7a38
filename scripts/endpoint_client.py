#!/usr/bin/env python3
"""One client of an OpenAI-compatible endpoint: k chains of each question, and the majority's answer.

Run by `bench_endpoint.py`, each client in a process of its own. Prints one JSON object: wall-clock seconds, this
process's CPU seconds and peak memory, and what became of questions and chains.

    python scripts/endpoint_client.py magicore http://127.0.0.1:8000/v1 --questions 200 --chains 32
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

MAX_TOKENS = 1000
ANSWER = re.compile(r"The final answer is (\S+?)\.?\s*$")


def questions(n: int) -> list[str]:
    """Questions that all differ."""
    return [f"What is {number} plus {3 * number}?" for number in range(n)]


def majority(texts: list[str | None]) -> tuple[str | None, int]:
    """The most frequent answer, and how many texts have none."""
    found = [ANSWER.search(text or "") for text in texts]
    answers = Counter(match[1] for match in found if match is not None)
    return (answers.most_common(1)[0][0] if answers else None), sum(match is None for match in found)


async def by_magicore(args: argparse.Namespace) -> dict[str, Any]:
    """A run with a store on disk, as a user would have it."""
    import magicore

    table: dict[str, Any] = {"name": "openai:hostile", "urls": args.url, "idle_timeout": args.timeout}
    if args.alone:
        table["max_n"] = 1
    with tempfile.TemporaryDirectory() as folder:
        run = await magicore.asolve_batch(
            [{"question": question, "kind": "number"} for question in questions(args.questions)],
            model="endpoint",
            models={"endpoint": table},
            method="self-consistency",
            k=args.chains,
            max_tokens=MAX_TOKENS,
            out=Path(folder) / "run",
            progress=False,
        )
    votes = sum(vote.count for result in run.results for vote in result.votes)
    return {
        "answered": sum(result.answer is not None for result in run.results),
        "lost": sum(result.error is not None for result in run.results),
        "chains": run.outcome.chains,
        "without_answer": run.outcome.chains - votes,
        "unknown_calls": run.summary.get("unknown_calls", 0),
    }


async def by_plain_loop(args: argparse.Namespace) -> dict[str, Any]:
    """What most people write: a semaphore, the openai client with its own retries, one call a chain."""
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=args.url, timeout=args.timeout)
    slots = asyncio.Semaphore(args.concurrency)

    async def one(question: str) -> str | None:
        async with slots:
            reply = await client.chat.completions.create(
                model="hostile",
                messages=[{"role": "user", "content": question}],
                temperature=0.8,
                max_tokens=MAX_TOKENS,
            )
        return reply.choices[0].message.content

    async def many(question: str) -> list[str | None]:
        return await asyncio.gather(*(one(question) for _ in range(args.chains)))

    found = await asyncio.gather(*(many(question) for question in questions(args.questions)), return_exceptions=True)
    await client.close()
    return tally(list(found))


async def by_its_hub(args: argparse.Namespace) -> dict[str, Any]:
    """its-hub's self-consistency, all questions at once through one orchestrator."""
    from its_hub import SelfConsistency
    from its_hub.core.lms.openai_lm import OpenAICompatibleLanguageModel
    from its_hub.core.orchestrator import LMOrchestrator

    model = OpenAICompatibleLanguageModel(
        endpoint=args.url, api_key="none", model_name="hostile", temperature=0.8, max_completion_tokens=MAX_TOKENS
    )
    algorithm = SelfConsistency(
        lambda text: match[1] if (match := ANSWER.search(text)) else None,
        orchestrator=LMOrchestrator(max_concurrency=args.concurrency),
    )

    async def many(question: str) -> list[str | None]:
        result = await algorithm.ainfer(model, question, args.chains, return_response_only=False)
        return [response.get("content") for response in result.responses]

    found = await asyncio.gather(*(many(question) for question in questions(args.questions)), return_exceptions=True)
    await model.close()
    return tally(list(found))


def tally(found: list[list[str | None] | BaseException]) -> dict[str, Any]:
    """What became of the questions; a question is lost when its exception is all that is left."""
    kept = [texts for texts in found if not isinstance(texts, BaseException)]
    voted = [majority(texts) for texts in kept]
    errors = Counter(type(error).__name__ for error in found if isinstance(error, BaseException))
    return {
        "answered": sum(answer is not None for answer, _ in voted),
        "lost": len(found) - len(kept),
        "chains": sum(map(len, kept)),
        "without_answer": sum(missing for _, missing in voted),
        "errors": dict(errors),
    }


CLIENTS: dict[str, Callable[[argparse.Namespace], Awaitable[dict[str, Any]]]] = {
    "magicore": by_magicore,
    "plain": by_plain_loop,
    "its-hub": by_its_hub,
}


def main() -> None:
    """Run one client and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("url", help="base URL of the endpoint")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--concurrency", type=int, default=64, help="of the clients that do not find it themselves")
    parser.add_argument("--alone", action="store_true", help="magicore asks for one sample a call, as the others do")
    parser.add_argument("--timeout", type=float, default=60.0)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what is lost is counted below
    wall, cpu = time.perf_counter(), time.process_time()
    found = asyncio.run(_run(args))
    found |= {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(found) + "\n")


async def _run(args: argparse.Namespace) -> dict[str, Any]:
    return await CLIENTS[args.client](args)


if __name__ == "__main__":
    main()
