// Sends and receives over plain ZeroMQ sockets that present the ticket of a join (JeroMQ 0.5 or newer). For a broker without
// encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the user may use.
import org.zeromq.*;

class Parcels {
  static final ZContext context = new ZContext();
  static final ZMQ.Socket control = context.createSocket(SocketType.REQ);

  static String field(String reply, String name) {
    var found = java.util.regex.Pattern.compile("\"" + name + "\":\"(.*?)\"").matcher(reply);
    if (!found.find()) throw new RuntimeException(reply);
    return found.group(1);
  }
  static ZMQ.Socket connected(SocketType type, String word) {
    control.send(String.format("{\"cmd\":\"join\",\"topic\":\"parcels\",\"type\":\"%s\",\"user_id\":\"%s\",\"password\":\"%s\"}",
        word, System.getenv("LIGHTQ_USER"), System.getenv("LIGHTQ_PASSWORD")));
    String joined = control.recvStr();
    var socket = context.createSocket(type);
    socket.setPlainUsername(field(joined, "id"));  // before the socket connects
    socket.setPlainPassword(field(joined, "secret"));
    socket.connect(field(joined, "bind_uri"));
    return socket;
  }
  public static void main(String[] arguments) {
    control.connect(System.getenv("LIGHTQ_BROKER"));
    ZMQ.Socket out = connected(SocketType.PUSH, "push"), in = connected(SocketType.PULL, "pull");
    for (int number = 0; number < 3; ++number) out.send("parcel " + number);
    for (int number = 0; number < 3; ++number) System.out.println(in.recvStr());
    context.close();
  }
}
