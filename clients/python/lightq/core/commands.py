"""The commands of the control socket as functions of one `ask`. The blocking client returns their results, the asyncio
client awaits them."""
from __future__ import annotations

import typing

T = typing.TypeVar("T")


class Commands:
    """`_ask` sends a request and returns its reply, or an awaitable of it. docs/protocol.md lists the fields and members
    of each; errors are the broker's."""

    def _ask(self, cmd: str, **fields: typing.Any) -> typing.Any:
        raise NotImplementedError

    def ping(self) -> typing.Any:
        return self._ask("ping")

    def version(self) -> typing.Any:
        return self._ask("version")

    def create_topic(self, topic: str, broker_type: str = "file", **settings: typing.Any) -> typing.Any:
        return self._ask("create_topic", topic=topic, broker_type=broker_type, **settings)

    def set_topic(self, topic: str, **settings: typing.Any) -> typing.Any:
        return self._ask("set_topic", topic=topic, **settings)

    def delete_topic(self, topic: str) -> typing.Any:
        return self._ask("delete_topic", topic=topic)

    def list_topics(self) -> typing.Any:
        return self._ask("list_topics")

    def stats(self, topic: typing.Optional[str] = None) -> typing.Any:
        """Returns a topic's statistics; without a topic, the broker's."""
        return self._ask("stats") if topic is None else self._ask("stats", topic=topic)

    def stats_all(self, after: typing.Optional[str] = None) -> typing.Any:
        return self._ask("stats_all") if after is None else self._ask("stats_all", after=after)

    def pause(self, topic: str, group: typing.Optional[str] = None) -> typing.Any:
        return self._of_group("pause", topic, group)

    def resume(self, topic: str, group: typing.Optional[str] = None) -> typing.Any:
        return self._of_group("resume", topic, group)

    def purge(self, topic: str, group: typing.Optional[str] = None, **more: typing.Any) -> typing.Any:
        return self._of_group("purge", topic, group, **more)

    def _of_group(self, cmd: str, topic: str, group: typing.Optional[str], **more: typing.Any) -> typing.Any:
        return self._ask(cmd, topic=topic, **({} if group is None else {"group": group}), **more)

    def set_group(self, topic: str, group: str, **settings: typing.Any) -> typing.Any:
        return self._ask("set_group", topic=topic, group=group, **settings)

    def delete_group(self, topic: str, group: str) -> typing.Any:
        return self._ask("delete_group", topic=topic, group=group)

    def list_dead(self, topic: str, group: str, **selection: typing.Any) -> typing.Any:
        return self._ask("list_dead", topic=topic, group=group, **selection)

    def retry_dead(self, topic: str, group: str, **selection: typing.Any) -> typing.Any:
        return self._ask("retry_dead", topic=topic, group=group, **selection)

    def purge_dead(self, topic: str, group: str, **selection: typing.Any) -> typing.Any:
        return self._ask("purge_dead", topic=topic, group=group, **selection)

    def list_delayed(self, topic: str, **selection: typing.Any) -> typing.Any:
        return self._ask("list_delayed", topic=topic, **selection)

    def cancel_delayed(self, topic: str, **selection: typing.Any) -> typing.Any:
        return self._ask("cancel_delayed", topic=topic, **selection)

    def create_user(self, user_id: str, password: str, rights: typing.Sequence[typing.Mapping[str, typing.Any]] = (),
                    admin: bool = False) -> typing.Any:
        return self._ask("create_user", user_id=user_id, password=password, rights=list(rights), admin=admin)

    def delete_user(self, user_id: str) -> typing.Any:
        return self._ask("delete_user", user_id=user_id)

    def grant(self, user_id: str, topic: str, rights: typing.Sequence[str]) -> typing.Any:
        return self._ask("grant", user_id=user_id, topic=topic, rights=list(rights))

    def revoke(self, user_id: str, topic: str, rights: typing.Sequence[str]) -> typing.Any:
        return self._ask("revoke", user_id=user_id, topic=topic, rights=list(rights))

    def set_password(self, user_id: str, new_password: str) -> typing.Any:
        """Changes the password of a user. Needs an administrator."""
        return self._ask("set_password", user_id=user_id, new_password=new_password)

    def list_users(self) -> typing.Any:
        return self._ask("list_users")

    def command(self, cmd: str, **fields: typing.Any) -> typing.Any:
        """Sends any command of docs/protocol.md, with the client's credentials."""
        return self._ask(cmd, **fields)
