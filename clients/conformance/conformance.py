#!/usr/bin/env python3
"""Runs the scenarios of the conformance kit against clients' agents, and prints a table (README.md).

    LIGHTQ_BINARY=$PWD/build/release/lightq python3 clients/conformance/conformance.py \\
        --agent $PWD/build/release/clients/conformance/cpp/conformance_agent
"""
import argparse
import concurrent.futures
import multiprocessing
import re
import shlex
import sys
import time
import traceback

import kit
import scenarios_consumers  # noqa: F401 - registers scenarios
import scenarios_errors  # noqa: F401
import scenarios_interruptions  # noqa: F401
import scenarios_messages  # noqa: F401
from agent_process import AgentProcess

PASSED, FAILED, MISSING = "yes", "**no**", "–"


def introduced(command, directory):
    """Returns an agent's first line."""
    agent = AgentProcess(command, directory)
    try:
        return agent.introduction
    finally:
        agent.close()


def run_one(title, command, features, options):
    """Runs a scenario. Returns its cell of the table, the seconds that it took, and its failure as text."""
    scenario = next(each for each in kit.SCENARIOS if each.title == title)
    if not scenario.needs <= features:
        return MISSING, 0, ""
    begun = time.monotonic()
    resources = kit.Kit(command, options.long, f"{options.seed} {title}")
    try:
        scenario(resources)
        resources.close()
        cell, failure = PASSED, ""
    except Exception:  # noqa: BLE001 - any exception is the scenario's result
        cell, failure = FAILED, traceback.format_exc()
        resources.abandon()
    return cell, time.monotonic() - begun, failure


def run_all(chosen, command, said, options):
    """Runs scenarios against an agent. Returns their cells by title."""
    cells = {}
    processes = multiprocessing.get_context("fork")  # the modules of the tests are for one thread
    with concurrent.futures.ProcessPoolExecutor(options.jobs, processes) as pool:
        runs = {pool.submit(run_one, each.title, command, set(said["features"]), options): each.title for each in chosen}
        for run in concurrent.futures.as_completed(runs):
            cells[runs[run]], seconds, failure = run.result()
            print(f"{said['client']}: {runs[run]}: {cells[runs[run]]} ({seconds:.1f} s)\n{failure}", end="", flush=True)
    return cells


def table_of(titles, columns):
    """Returns the table as Markdown. `columns`: for each client its heading and its cells by title."""
    rows = [["scenario", *(heading for heading, _ in columns)], ["---"] * (len(columns) + 1)]
    rows += [[title, *(cells[title] for _, cells in columns)] for title in titles]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def options_of(arguments):
    parser = argparse.ArgumentParser(description="Runs the scenarios of the conformance kit against clients' agents.")
    parser.add_argument("--agent", action="append", required=True, help="the command that starts an agent; may be repeated")
    parser.add_argument("--long", action="store_true", help="more messages and interruptions, and all scenarios")
    parser.add_argument("--jobs", type=int, default=4, help="how many scenarios run at the same time")
    parser.add_argument("--only", default="", help="a regular expression for the names of scenarios")
    parser.add_argument("--seed", default="1", help="for other random choices; a run with the same seed repeats them")
    parser.add_argument("--table", help="a file for the table; by default it goes to standard output")
    return parser.parse_args(arguments)


def unmatched(only):
    """Returns the alternatives of --only, separated by `|` outside of parentheses, that match no scenario."""
    return [each for each in re.split(r"\|(?![^()]*\))", only) if not any(re.search(each, scenario.title) for scenario in kit.SCENARIOS)]


def main(arguments):
    options = options_of(arguments)
    for each in unmatched(options.only):
        sys.exit(f"conformance: no scenario matches '{each}'")
    chosen = [each for each in kit.SCENARIOS if re.search(options.only, each.title) and (options.long or not each.is_long)]
    columns, failed = [], 0
    for command in map(shlex.split, options.agent):
        place = kit.Kit(command)
        said = introduced(command, place.directory)
        place.close()
        cells = run_all(chosen, command, said, options)
        failed += sum(cell == FAILED for cell in cells.values())
        columns.append((f"{said['client']} {said['version']}", cells))
    table = table_of([scenario.title for scenario in chosen], columns)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(table)
    else:
        print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
