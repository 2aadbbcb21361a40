// Flink's SQL client and a cluster for it in one process: flink.sh runs it with a folder of settings, to which it adds where the cluster
// is, and the client's arguments. A client alone makes a cluster for every statement, and at times loses the answer of one that has ended.
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.client.SqlClient;

class Local {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = GlobalConfiguration.loadConfiguration(arguments[0]);
    configuration.set(RestOptions.BIND_ADDRESS, "127.0.0.1");
    configuration.set(RestOptions.BIND_PORT, "0");
    MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
        .setConfiguration(configuration).setNumTaskManagers(1).setNumSlotsPerTaskManager(4).build());
    cluster.start();
    URI address = cluster.getRestAddress().get();
    Files.writeString(Path.of(arguments[0], "config.yaml"),
        "execution.target: remote\nrest.address: " + address.getHost() + "\nrest.port: " + address.getPort() + "\n", StandardOpenOption.APPEND);
    try {
      SqlClient.main(Arrays.copyOfRange(arguments, 1, arguments.length));
      System.exit(0);
    } catch (Throwable error) {
      System.out.println("[ERROR] " + error);
      System.exit(1);
    }
  }
}
