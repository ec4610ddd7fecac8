"""The operators' files say what they should: nobody is root, nothing is writable, signals arrive, roles exist."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]
from tests.support.environment import ROOT
from tests.support.installation import unavailable

from tidings.cli.run import ROLES
from tidings.config import Server

DEPLOY = ROOT / "deploy"


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
    return parsed


def test_the_compose_file_starts_one_server_and_two_workers() -> None:
    services = compose()["services"]
    roles = {name: s["command"][2] for name, s in services.items() if name != "postgres"}
    assert roles == {"discover": "discover", "worker": "work", "server": "serve"}
    assert set(roles.values()) <= set(ROLES)
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["server"]["ports"] == ["127.0.0.1:8000:8000"]


def test_our_containers_may_write_nothing_and_gain_nothing() -> None:
    for name, service in compose()["services"].items():
        if name != "postgres":
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert int(service["stop_grace_period"].removesuffix("s")) > 25
    assert re.findall(r"PASSWORD: (?!\$\{)", (DEPLOY / "docker-compose.yml").read_text()) == []


def test_the_image_is_not_root_and_signals_arrive() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    (user,) = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert user.partition(":")[0] not in ("0", "root")
    (entry,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT ")]
    assert entry == ["tini", "--", "tidings"]
    assert any("--require-hashes" in line for line in lines)
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    root = DEPLOY.parent
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for name in copied:
        assert (root / name).exists(), name
        assert f"!{name}" in kept


def test_the_unit_is_hardened_and_waits_for_a_clean_stop() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd minds the case of its keys
    unit.read(DEPLOY / "tidings.service")
    service = dict(unit["Service"])
    assert service["ExecStart"] == "/opt/tidings/bin/tidings run"
    assert int(service["TimeoutStopSec"]) > 25
    assert service["RestartPreventExitStatus"] == "2"
    hardened = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "DynamicUser", "RestrictNamespaces")
    assert {service[name] for name in hardened} == {"yes"}
    assert service["ProtectSystem"] == "strict"
    assert int(service["LimitNOFILE"]) >= 2 * Server().connections_max


def test_each_rule_fires_above_its_limit_and_not_at_it() -> None:
    if shutil.which("promtool") is None:
        unavailable("promtool is not installed (Debian's package prometheus)")
    for command in (["check", "rules", "prometheus-rules.yml"], ["test", "rules", "prometheus-rules-test.yml"]):
        ended = subprocess.run(["promtool", *command], cwd=DEPLOY, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    known = (DEPLOY.parent / "docs/reference/metrics.md").read_text()
    for name in ("prometheus-rules.yml", "grafana-dashboard.json", "prometheus-rules-test.yml"):
        for metric in set(re.findall(r"\btidings_\w+", (DEPLOY / name).read_text())):
            assert f"`{re.sub('_(bucket|count|sum)$', '', metric)}`" in known, f"{name} asks for {metric}"


def test_every_rule_is_played() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
    tests = yaml.safe_load((DEPLOY / "prometheus-rules-test.yml").read_text())["tests"]
    played = {re.search(r'alertname="(\w+)"', each["promql_expr_test"][0]["expr"])[1] for each in tests}  # type: ignore[index]
    assert {rule["alert"] for rule in rules} - played == {"TidingsSourceSilent"}, "which needs a day"


def test_rules_and_dashboard_can_be_read() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
    assert all({"alert", "expr", "annotations"} <= set(rule) for rule in rules)
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 8


KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
VERSIONS = ("1.31", "1.34")


def manifests() -> list[dict[str, Any]]:
    return [each for file in KUBERNETES for each in yaml.safe_load_all(file.read_text())]


def pods() -> dict[str, dict[str, Any]]:
    return {m["metadata"]["name"]: m["spec"]["template"]["spec"] for m in manifests() if "template" in m["spec"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field_of_the_manifests(version: str) -> None:
    assert len(manifests()) == 8
    for manifest in manifests():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_each_role_has_a_deployment_that_gains_nothing_and_stops_well() -> None:
    assert set(pods()) == {"discover", "work", "serve", "token"}
    for name, pod in pods().items():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["terminationGracePeriodSeconds"] > 25
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not [e for e in container["env"] if "value" not in e or "://" in e["value"]], "a secret is a file"
        if name in ROLES:
            assert container["args"][:3] == ["run", "--role", name]
            ports = {port["name"] for port in container["ports"]}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = container[probe]["httpGet"]
                assert (asked["port"] in ports, asked["httpHeaders"][0]["value"]) == (True, "localhost")


def test_a_disruption_leaves_one_process_of_each_role() -> None:
    budgets = {m["metadata"]["name"]: m["spec"] for m in manifests() if m["kind"] == "PodDisruptionBudget"}
    assert set(budgets) == {"discover", "work", "serve"}
    for role, budget in budgets.items():
        assert budget["minAvailable"] == 1
        assert budget["selector"]["matchLabels"] == {"app": "tidings", "role": role}
