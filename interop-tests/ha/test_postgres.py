"""Tests of postgres.py itself: its clusters replicate, fail and come back as the tests of the brokers take for granted."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest

from postgres import NEWEST, OLDEST, Cluster, Member, wait


class Inserts:
    """Inserts rows through the primary's address, each in a transaction, and keeps those that were acknowledged."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.acknowledged, self.asked, self.stopping = cluster, [], 0, threading.Event()
        with cluster.connect() as connection:
            connection.execute("create table if not exists rows (number int primary key)")
            self.asked = connection.execute("select coalesce(max(number), 0) from rows").fetchone()[0]
        self.thread = threading.Thread(target=self.work)

    def __enter__(self) -> Inserts:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join()

    def work(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.cluster.connect() as connection:
                    while not self.stopping.is_set():
                        self.asked += 1
                        connection.execute("insert into rows values (%s)", [self.asked])
                        self.acknowledged.append(self.asked)
            except psycopg.Error:
                time.sleep(0.05)

    def wait_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        wait(lambda: len(self.acknowledged) >= wanted, 30, f"{count} rows were not acknowledged")

    def missing(self) -> list[int]:
        acknowledged = list(self.acknowledged)
        found = {number for number, in self.cluster.query("select number from rows")}
        return [number for number in acknowledged if number not in found]


def is_same(cluster: Cluster, member: Member) -> bool:
    text = "select count(*), sum(number) from rows"
    return member.query(text) == cluster.query(text)


@pytest.fixture
def cluster(tmp_path: Path):
    with Cluster(tmp_path) as made:
        yield made


def test_a_commit_waits_for_one_of_two_standbys(cluster: Cluster) -> None:
    with Inserts(cluster) as inserts:
        inserts.wait_more(5)
        for standby in cluster.standbys:
            standby.upstream.hold()
        time.sleep(0.3)
        before = len(inserts.acknowledged)
        time.sleep(1)
        assert len(inserts.acknowledged) == before
        cluster.standbys[1].upstream.release()
        inserts.wait_more(5)
        cluster.standbys[0].upstream.release()
    cluster.wait_replicating(2)
    assert inserts.missing() == []


@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_what_was_acknowledged_survives_the_loss_of_the_primary(tmp_path: Path, version: int) -> None:
    with Cluster(tmp_path, version=version) as cluster, Inserts(cluster) as inserts:
        assert cluster.query("show server_version_num")[0][0].startswith(str(version))
        for _ in range(2):
            inserts.wait_more(100)
            former = cluster.fail_over()
            assert not former.running and cluster.primary is not former
            inserts.wait_more(20)
            assert inserts.missing() == []
            # The client programs have a pg_rewind of the newest version.
            assert cluster.rejoin(former) == (version == NEWEST)
            cluster.wait_replicating(2)
            wait(lambda: is_same(cluster, former), 20, f"{former} has other rows")


def test_the_wrong_standby_loses_what_was_acknowledged(cluster: Cluster) -> None:
    ahead, behind = cluster.standbys
    with Inserts(cluster) as inserts:
        inserts.wait_more(5)
        behind.upstream.down()
        inserts.wait_more(50)
        cluster.primary.kill()
    assert cluster.most_advanced() is ahead
    cluster.promote(behind)
    assert len(inserts.missing()) >= 40
    # The one that had more cannot follow until it is rewound.
    assert cluster.rejoin(ahead)
    wait(lambda: is_same(cluster, ahead), 20, f"{ahead} has other rows")


def test_the_former_primary_comes_back_beside_the_new_one(cluster: Cluster) -> None:
    former = cluster.primary
    with Inserts(cluster) as inserts:
        inserts.wait_more(20)
        former.freeze()
        cluster.promote()
        inserts.wait_more(20)
        former.thaw()
        # It still believes that it is the primary, but has no standby that could confirm a commit.
        with former.connect() as connection, pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("set statement_timeout = '1s'")
            connection.execute("select pg_sleep(30)")
        assert not former.is_standby()
        assert former.query("select count(*) from pg_stat_replication") == [(0,)]
    cluster.rejoin(former)
    assert inserts.missing() == []


def test_the_primary_restarts_in_its_place(cluster: Cluster) -> None:
    with Inserts(cluster) as inserts:
        inserts.wait_more(20)
        for standby in cluster.standbys:
            standby.upstream.down()
        cluster.primary.restart("immediate")
        for standby in cluster.standbys:
            standby.upstream.up()
        inserts.wait_more(20)
    assert inserts.missing() == []


def test_a_client_verifies_the_certificate(cluster: Cluster) -> None:
    for host in ("localhost", "127.0.0.1"):
        with cluster.connect(sslmode="verify-full", sslrootcert=cluster.authority, host=host, hostaddr="127.0.0.1") as connection:
            assert connection.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone() == (True,)
    with psycopg.connect(cluster.url(verify=True).replace("postgres://", "postgresql://")) as connection:
        assert connection.execute("select current_user").fetchone() == ("jitney",)
    with pytest.raises(psycopg.OperationalError, match="does not match host name"):
        cluster.connect(sslmode="verify-full", sslrootcert=cluster.authority, host="elsewhere", hostaddr="127.0.0.1")
